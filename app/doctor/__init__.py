"""What `cloche doctor` looks at, in two halves that know nothing of each other's work.

* `look` and `look_terminal` ask this host and put what they saw into the plain data of `host`;
* `machine_checks`, `host_checks` and `terminal_checks` turn such data into findings. They touch
  nothing, so tests give them hosts that nobody has.
"""
