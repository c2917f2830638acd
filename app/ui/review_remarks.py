"""What the user says in a review: comments, reasons, own lines in the place of a hunk's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on

from app.protocol import Decide
from app.protocol_review import Comment, CommentRequest, EditRequest
from app.ui.failures import told
from app.ui.messages import CommentsArrived, HunkRead, RequestRead, TaskDone, TaskFailed
from app.ui.review_decide import ReviewDecide
from app.ui.text_dialog import TextDialog, TextQuestion, editable
from app.ui.workers import work
from snapshot.safe_text import encode, safe_block, safe_name

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from app.protocol_review import ChangeRequest, HunkResult
    from app.services.ports import SessionPort
    from widgets.diff_model import Side


class ReviewRemarks(ReviewDecide):
    """Asks for texts and sends them to the keeper, which alone keeps them."""

    # Comments

    @on(CommentsArrived)
    def take_comments(self, message: CommentsArrived) -> None:
        """Mark the lines that comments are about."""
        self.comments = message.comments
        self.show_comments()
        self.show_place()

    def action_comment(self) -> None:
        """Write a comment: on the chosen lines or the line, in the list on the file or on all."""
        request = self._comment_place()
        if request is None:
            return
        known = self._known_comment(request)
        about = "An empty text takes the comment away." if known else ""
        text = "" if known is None else safe_block(known.text).text
        question = TextQuestion(f"Comment on {_place_text(request)}", about, text)

        def written(answer: str | None) -> None:
            if answer is not None:
                self._write_comment(request, known, answer.strip())

        self.cloche.push_screen(TextDialog(question), written)

    def _comment_place(self) -> CommentRequest | None:
        if self.files.has_focus:
            key = self.files.current_key or ""
            return CommentRequest(path=key if key in self.by_path else "", text="")
        if self.change is None:
            return None
        places = [
            place for row in self.pane.chosen_or_cursor() if (place := self.pane.place_of(row))
        ]
        if not places:
            return CommentRequest(path=self.path, text="")
        side: Side = "new" if any(side == "new" for side, _ in places) else "old"
        lines = [self._number(side, line) for found, line in places if found == side]
        return CommentRequest(self.path, "", side, min(lines), max(lines))

    def _number(self, side: Side, line: int) -> int:
        assert self.loaded is not None
        return self.loaded.review.line_number(side, line) or 1

    def _known_comment(self, request: CommentRequest) -> Comment | None:
        return next(
            (
                comment
                for comment in self.comments
                if comment.path == request.path
                and comment.side == request.side
                and comment.start <= request.start <= max(comment.start, comment.end)
                and not comment.sent
            ),
            None,
        )

    def _write_comment(self, request: CommentRequest, known: Comment | None, text: str) -> None:
        session = self.session
        if session is None or (not text and known is None):
            return
        if known is not None and not text:
            self.do("The comment is taken away.", lambda: session.uncomment(known.id))
            return
        name = "" if known is None else known.id
        start, end = (request.start, request.end) if known is None else (known.start, known.end)
        asked = CommentRequest(request.path, text, request.side, start, end, id=name)
        self.do("The comment is kept; R sends it to the agent.", lambda: session.comment(asked))

    # Reasons

    def action_reject_why(self) -> None:
        """Reject what is chosen, the hunk or the file, and say why."""
        if self.change is None or not self._can_decide():
            return
        decisions = self._rejecting()
        if not decisions:
            self.say("Nothing here can be rejected.")
            return
        question = TextQuestion("Reject, and say why", "The agent is told when you send it (R).")

        def written(answer: str | None) -> None:
            if answer is not None:
                reason = answer.strip()
                given = [Decide(d.path, d.decision, d.hunks, d.lines, reason) for d in decisions]
                self._decide(given, ())
                self.pane.choose(None)

        self.cloche.push_screen(TextDialog(question), written)

    def _rejecting(self) -> list[Decide]:
        if self.files.has_focus:
            key = self.files.current_key
            return [Decide(key, "rejected")] if key is not None and key in self.by_path else []
        if self.pane.choice_start is not None:
            found = [(self._unit_of(lines), lines.changes) for lines in self.pane.chosen()]
            return [Decide(self.path, "rejected", (u.id,), lines) for u, lines in found if u]
        index = self.unit_index()
        hunks = () if index is None else (self.units[index].id,)
        return [Decide(self.path, "rejected", hunks)]

    # Own lines

    def action_edit(self) -> None:
        """Write other lines in the place of the hunk under the cursor."""
        index = self.unit_index()
        if self.session is None or index is None or not self._can_decide():
            return
        unit = self.units[index]
        if unit.aspect:
            self.say("Only lines can be edited; this is decided as a whole.")
            return
        self.read_hunk(self.session, self.path, unit.id)

    @work("load", exclusive=True)
    async def read_hunk(self, session: SessionPort, path: str, hunk: str) -> None:
        """Fetch what a hunk's lines become as it is decided now."""
        try:
            self.post_message(HunkRead(path, hunk, await session.hunk_result(path, hunk)))
        except self.cloche.failures as error:
            self.post_message(TaskFailed(*told(error)))

    @on(HunkRead)
    def edit_hunk(self, message: HunkRead) -> None:
        """Let the user write the hunk's lines."""
        found = editable(_to_edit(message.result))
        if found is None:
            text = "These lines hold characters that cannot be edited here without losing bytes."
            self.say(text, "accept or reject them, and edit the file after the merge", "warning")
            return
        text, ending = found
        question = TextQuestion(
            f"Edit the result in {safe_name(message.path).text}",
            "What you write is merged in the place of this hunk, and accepted.",
            text,
            "accept these lines",
            code=True,
        )

        def written(answer: str | None) -> None:
            session = self.session
            if answer is not None and session is not None:
                content = encode(_closed(answer, text).replace("\n", ending))
                asked = EditRequest(message.path, message.hunk, content)
                self.do("Your lines stand in the hunk's place.", lambda: session.edit(asked))

        self.cloche.push_screen(TextDialog(question), written)

    # The request

    def action_request(self) -> None:
        """Show the prompt that asks the agent for changes; it is sent when the user says so."""
        if self.session is not None:
            self.read_request(self.session)

    @work("load", exclusive=True)
    async def read_request(self, session: SessionPort) -> None:
        """Fetch the prompt of everything that the agent was not told of yet."""
        try:
            self.post_message(RequestRead(await session.change_request()))
        except self.cloche.failures as error:
            self.post_message(TaskFailed(*told(error)))

    @on(RequestRead)
    def show_request(self, message: RequestRead) -> None:
        """Let the user read and change the prompt before it is sent."""
        request = message.request
        if not request.text:
            self.say("There is nothing to ask for.", "c writes a comment, X rejects with a reason")
            return
        about = f"{_counted(request)}. It is typed into the agent's screen as it stands here."
        text = safe_block(request.text).text
        question = TextQuestion("Ask the agent for changes", about, text, "send it")

        def written(answer: str | None) -> None:
            session = self.session
            if answer is not None and answer.strip() and session is not None:
                self.send_request(session, answer, request.items)

        self.cloche.push_screen(TextDialog(question), written)

    @work("decide")
    async def send_request(self, session: SessionPort, text: str, items: Sequence[str]) -> None:
        """Type the prompt into the agent's screen."""
        try:
            await session.request_changes(text, items)
        except self.cloche.failures as error:
            self.post_message(TaskFailed(*told(error)))
        else:
            self.post_message(TaskDone("The agent is asked for changes.", "r shows what it does"))

    @on(TaskDone)
    def say_done(self, message: TaskDone) -> None:
        """Say what is done, and show it."""
        self.say(message.text, message.hint, "done")
        self.stale.set()

    @work("decide")
    async def do(self, done: str, call: Callable[[], Coroutine[None, None, object]]) -> None:
        """Ask the keeper for something in its turn and say that it is done."""
        try:
            async with self.in_turn:
                await call()
        except self.cloche.failures as error:
            self.post_message(TaskFailed(*told(error)))
        else:
            self.post_message(TaskDone(done, "u takes it back"))


def _counted(request: ChangeRequest) -> str:
    """Return what is in a request, in numbers."""
    hunks = "1 rejected hunk" if request.rejected == 1 else f"{request.rejected} rejected hunks"
    notes = "1 comment" if request.comments == 1 else f"{request.comments} comments"
    rest = f", {request.left_out} more for the next request" if request.left_out else ""
    return f"{hunks}, {notes}{rest}"


def _closed(answer: str, before: str) -> str:
    """End the last line as it was ended before, so that it does not run into the next one."""
    return f"{answer}\n" if answer and before.endswith("\n") > answer.endswith("\n") else answer


def _to_edit(result: HunkResult) -> bytes:
    """Return the lines to begin with: the agent's, unless something was decided or edited."""
    return result.content if result.edited else result.proposed


def _place_text(request: CommentRequest) -> str:
    if not request.path:
        return "the whole review"
    name = safe_name(request.path).text
    if not request.start:
        return name
    lines = f"{request.start}" if request.end <= request.start else f"{request.start}-{request.end}"
    return f"{name}:{lines}" + ("  (the old side)" if request.side == "old" else "")
