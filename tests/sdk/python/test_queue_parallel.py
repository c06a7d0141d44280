"""Parallel use of queues: many takers never hold the same message, and nothing is lost."""

import asyncio
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from azure.core.exceptions import ResourceExistsError
from azure.storage.queue import QueueServiceClient
from azure.storage.queue.aio import QueueServiceClient as AsyncQueueServiceClient

from flavours import CLIENT_OPTIONS

THREADS = 8


@pytest.fixture
def plain_queue(connection_string, queue_name):
    """A queue of the synchronous client, because here threads provide the parallelism."""
    with QueueServiceClient.from_connection_string(connection_string, **CLIENT_OPTIONS) as service:
        yield service.create_queue(queue_name)
        service.delete_queue(queue_name)


def in_threads(function, inputs):
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(function, inputs))


def test_threads_send_and_each_message_is_taken_once(plain_queue):
    in_threads(lambda number: plain_queue.send_message(f"{number}"), range(300))
    assert plain_queue.get_queue_properties().approximate_message_count == 300

    def take(size):
        taken = []
        for message in plain_queue.receive_messages(messages_per_page=size, visibility_timeout=300):
            plain_queue.delete_message(message)
            taken.append((message.content, message.dequeue_count))
        return taken

    taken = [message for part in in_threads(take, [1, 2, 5, 32] * 2) for message in part]
    assert Counter(taken) == Counter((f"{number}", 1) for number in range(300))
    assert plain_queue.get_queue_properties().approximate_message_count == 0


def test_takers_of_a_single_message(plain_queue):
    for _ in range(10):
        plain_queue.send_message("one")
        winners = [message for message in in_threads(lambda _: plain_queue.receive_message(), range(16)) if message]
        assert len(winners) == 1
        plain_queue.delete_message(winners[0])


def test_of_those_who_create_the_same_queue_one_creates_it(connection_string):
    name = "q" + uuid.uuid4().hex
    with QueueServiceClient.from_connection_string(connection_string, **CLIENT_OPTIONS) as service:

        def create(_):
            try:
                return bool(service.create_queue(name))
            except ResourceExistsError as error:
                assert error.status_code == 204
                return False

        assert in_threads(create, range(20)).count(True) == 1
        assert [found.name for found in service.list_queues(name_starts_with=name)] == [name]
        service.delete_queue(name)


def test_gathered_sends_and_takes(connection_string):
    async def run():
        async with AsyncQueueServiceClient.from_connection_string(connection_string, **CLIENT_OPTIONS) as service:
            queue = await service.create_queue("q" + uuid.uuid4().hex)
            await asyncio.gather(*(queue.send_message(f"{number}") for number in range(200)))

            async def take():
                taken = []
                while (message := await queue.receive_message(visibility_timeout=300)) is not None:
                    await queue.delete_message(message)
                    taken.append(message.content)
                return taken

            parts = await asyncio.gather(*(take() for _ in range(20)))
            await service.delete_queue(queue.queue_name)
            return [text for part in parts for text in part]

    assert Counter(asyncio.run(run())) == Counter(f"{number}" for number in range(200))
