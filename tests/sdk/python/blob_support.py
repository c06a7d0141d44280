"""What most tests of blobs need: bytes, a look at the answer, refusals by status and code."""

import random

import pytest
from azure.core.exceptions import HttpResponseError

KIB = 1024
MIB = 1024 * KIB


def bytes_of(size, seed=1):
    """Bytes that differ from place to place and from seed to seed."""
    return random.Random(seed).randbytes(size)


def assert_refused(call, status, code):
    with pytest.raises(HttpResponseError) as caught:
        call()
    assert (caught.value.status_code, caught.value.error_code) == (status, code)
    return caught.value


def names(items):
    return [item.name for item in items]


def content(blob, **options):
    return blob.download_blob(**options).readall()


def answer_to(call, *arguments, **options):
    """The status and headers of the last answer, which the SDK mostly keeps to itself."""
    seen = []

    def look(response):
        answer = response.http_response
        seen.append((answer.status_code, {name.lower(): value for name, value in answer.headers.items()}))

    call(*arguments, raw_response_hook=look, **options)
    return seen[-1]
