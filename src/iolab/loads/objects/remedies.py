"""What is wrong with a store by the class of a refused request, and what to do about it."""

from __future__ import annotations

from typing import Final

from iolab.record import Record

OTHER_HINT: Final = "See the endpoint, bucket and region under [target], and the keys."


class EndpointProblem(Record):
    """A sentence's middle on an endpoint, as in "ENDPOINT refuses …", and what to do."""

    text: str
    hint: str


PROBLEMS: Final = {
    "NoSuchBucket": EndpointProblem(
        "has no bucket '{bucket}'",
        "Make the bucket, or write create_bucket = true under [target].",
    ),
    "SignatureDoesNotMatch": EndpointProblem(
        "refuses the signature",
        "Correct the secret key (AWS_SECRET_ACCESS_KEY or the profile's), or the region under "
        "[target].",
    ),
    "InvalidAccessKeyId": EndpointProblem(
        "does not know the access key",
        "Correct AWS_ACCESS_KEY_ID, or name another profile under [target].",
    ),
    "AccessDenied": EndpointProblem(
        "denies access to bucket '{bucket}'",
        "Let the key list the bucket, and read, write and delete objects in it.",
    ),
    "ExpiredToken": EndpointProblem(
        "says that the session token has expired", "Log in again, and run again."
    ),
    "RequestTimeTooSkewed": EndpointProblem(
        "has another time than the host{skew}",
        "Set both clocks, by NTP for example: servers refuse requests that are 15 minutes off.",
    ),
    "connect-refused": EndpointProblem(
        "refuses connections", "Start the server, or correct the port of the endpoint."
    ),
    "connect-timeout": EndpointProblem(
        "does not answer in time", "Correct the address, or open the firewalls on the way."
    ),
    "connect-failed": EndpointProblem(
        "cannot be reached", "Correct the address, or the routes of the host."
    ),
    "tls": EndpointProblem(
        "cannot be trusted over TLS",
        "Give the authority of its certificate as target.ca_file, and the name that is in the "
        "certificate as the endpoint; a server without TLS has http://.",
    ),
    "closed": EndpointProblem(
        "closes connections without an answer",
        "See that an S3 server has that port; one with TLS has https://.",
    ),
    "bad-response": EndpointProblem(
        "does not answer by HTTP", "See that an S3 server has that port; one with TLS has https://."
    ),
    "redirect": EndpointProblem(
        "sends requests elsewhere", "Give the endpoint and region that it names under [target]."
    ),
    "SlowDown": EndpointProblem("is overloaded", "Wait for the end of other load, and run again."),
    "is not found": EndpointProblem(
        "has a name that is not found",
        "Correct the name of the endpoint, or the name servers of the host.",
    ),
}
"""By the class's name, or by what the engine says of a name without address."""


def problem_name_in_text(text: str) -> str | None:
    """The key of the problem whose class a sentence on a failed request names."""
    return next((name for name in PROBLEMS if name in text), None)


def request_failure_hint(text: str) -> str:
    """What to do about a request that failed, by the name of its class in a sentence on it."""
    name = problem_name_in_text(text)
    return OTHER_HINT if name is None else PROBLEMS[name].hint
