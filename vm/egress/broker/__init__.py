"""The credential broker: guests ask it by internal names, it alone has the keys.

It takes plain HTTP/1.1 from the guest, checks the session's placeholder and the service's rules,
and asks the real host over TLS with the credential added. The value never goes the other way.
"""
