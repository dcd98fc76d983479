"""Tests of the client against a running server: RETAKE_URL, RETAKE_TOKEN and RETAKE_PROJECT name it and a folder."""

import os
import threading
import time
import typing
import unittest

import retake_client
from retake_client import ApiError, Client, Conflict


def client(**options: object) -> Client:
    return Client(os.environ["RETAKE_URL"], os.environ["RETAKE_TOKEN"], **options)


class ClientTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.client = client(name="test")
        cls.project = cls.client.post_projects(folder=os.environ["RETAKE_PROJECT"])["id"]

    def thread(self, title: str) -> str:
        made = self.client.post_threads(title=title, project=self.project, current=True)
        return made["thread"]

    def test_the_types_are_valid(self) -> None:
        names = [name for name in dir(retake_client.api) if name[0].isupper()]
        self.assertGreater(len(names), 100)
        for name in names:
            kind = getattr(retake_client.api, name)
            if isinstance(kind, type) and typing.is_typeddict(kind):
                typing.get_type_hints(kind, vars(retake_client.api), include_extras=True)

    def test_entries_one_by_one(self) -> None:
        thread = self.thread("Entries")
        entries = [{"role": "User", "content": "One"}, {"role": "AI", "content": "Two"}]
        self.client.post_thread_entries(thread, entries=entries)
        listed = self.client.get_thread_entries(thread)
        self.assertEqual(len(listed["items"]), 2)
        first = listed["items"][0]["id"]
        self.client.patch_thread_entry(thread, first, content="Edited")
        self.client.delete_thread_entry(thread, listed["items"][1]["id"])
        self.client.post_thread_undo(thread)
        text = str(self.client.get_thread_entries(thread)["items"])
        self.assertTrue("Edited" in text and "Two" in text, text)

    def test_a_stale_version_is_a_conflict_and_changes_nothing(self) -> None:
        thread = self.thread("Versions")
        before = self.client.get_thread(thread)["version"]
        changed = self.client.post_thread_rename(thread, title="Renamed", if_match=before)
        with self.assertRaises(Conflict) as caught:
            self.client.post_thread_rename(thread, title="Again", if_match=before)
        self.assertEqual(caught.exception.current, changed["version"])
        self.assertEqual(self.client.get_thread(thread)["title"], "Renamed")

    def test_errors_have_a_code_and_a_message(self) -> None:
        with self.assertRaises(ApiError) as caught:
            self.client.get_thread("nothing/like it")
        self.assertEqual((caught.exception.status, caught.exception.code), (404, "not_found"))
        with self.assertRaises(ApiError) as caught:
            Client(os.environ["RETAKE_URL"], "wrong").get_threads()
        self.assertEqual(caught.exception.status, 401)

    def test_a_repeated_key_repeats_nothing(self) -> None:
        thread = self.thread("Keys")
        entry = [{"role": "User", "content": "Once"}]
        answers = [self.client.post_thread_entries(thread, entries=entry, idempotency_key="k1") for _ in range(2)]
        self.assertEqual(answers[0], answers[1])
        self.assertEqual(len(self.client.get_thread_entries(thread)["items"]), 1)

    def test_the_session_is_replaced_as_a_whole(self) -> None:
        self.thread("Session")
        self.client.set_session([{"role": "User", "content": "A"}, {"role": "AI", "content": "B"}])
        self.assertEqual([entry["content"] for entry in self.client.get_session()], ["A", "B"])

    def test_fields_are_read_and_set(self) -> None:
        self.thread("Fields")
        fields = self.client.get_api_fields()["fields"]
        self.assertTrue(fields)
        self.client.set_value("title", "By a field")
        self.assertEqual(self.client.get_value("title"), "By a field")

    def test_events_follow_the_log_from_where_they_were(self) -> None:
        thread = self.thread("Events")
        seen: list[retake_client.Event] = []

        def follow(after: str | None, wanted: int) -> None:
            for event in client().events(thread=thread, after=after):
                if event["event"] == "operation":
                    seen.append(event)
                    if len(seen) == wanted:
                        return

        follower = threading.Thread(target=follow, args=("0", 2), daemon=True)
        follower.start()
        time.sleep(0.2)
        self.client.post_thread_rename(thread, title="Events, renamed")
        follower.join(20)
        self.assertFalse(follower.is_alive(), "two events came")
        later = seen[-1]["id"]
        self.assertIsNotNone(later)
        seen.clear()
        self.client.post_thread_rename(thread, title="Events, again")
        follower = threading.Thread(target=follow, args=(later, 1), daemon=True)
        follower.start()
        follower.join(20)
        self.assertEqual(len(seen), 1, "it continues behind the last event")

    def test_a_turn_runs(self) -> None:
        thread = self.thread("Turn")
        self.client.post_thread_turns(thread, prompt="say Hello.")
        for _ in range(200):
            text = str(self.client.get_thread_entries(thread)["items"])
            if text.count("Hello.") > 1:
                return
            time.sleep(0.1)
        self.fail(text)


if __name__ == "__main__":
    unittest.main()
