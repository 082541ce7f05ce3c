"""Which capabilities the login of a process needs, method by method; tests compare it with a strict store and the docs."""

from collections.abc import Mapping

from onecommit.domain.capability import Needs

OPERATOR: Needs = (("operator",),)
READER: Needs = (("reader",),)
INGRESS: Needs = (("callback_ingress",),)
_PRODUCER: Needs = (("producer",),)
_ACCEPTOR: Needs = (("work_acceptor",),)
WORKER: Needs = (("executor", "maintenance"),)
WORK_OPERATOR: Needs = (("work_operator",),)
WORK_READER: Needs = (("reader",), ("work_operator",))
WORK_RETENTION: Needs = (("work_retention",),)

METHODS: Mapping[str, Needs] = {
    "job.enqueue": _PRODUCER,
    "job.enqueue_many": _PRODUCER,
    "work.accept": _ACCEPTOR,
    "invocation.handoff": _ACCEPTOR,
    "ctx.complete_in_tx": (("finalizer",),),
    "app.worker": WORKER,
    "app.jobs.get": READER,
    "app.jobs.list": READER,
    "app.jobs.cancel": OPERATOR,
    "app.jobs.cancel_many": OPERATOR,
    "app.jobs.cancel_all": OPERATOR,
    "app.queues.list": READER,
    "app.queues.finalization": (("executor",), ("reader",)),
    "app.queues.pause": OPERATOR,
    "app.queues.resume": OPERATOR,
    "app.queues.disable_caller_owned": OPERATOR,
    "app.queues.allow_caller_owned": OPERATOR,
    "app.dead_letters.list": READER,
    "app.dead_letters.retry": OPERATOR,
    "app.dead_letters.purge": OPERATOR,
    "app.workers.list": READER,
    "app.workers.loads": READER,
    "app.ring.get": READER,
    "app.callbacks.list": READER,
    "app.callbacks.resume": INGRESS,
    "app.callbacks.complete": INGRESS,
    "app.callbacks.fail": INGRESS,
    "app.callbacks.retry": INGRESS,
    "app.works.get": WORK_READER,
    "app.works.list": WORK_READER,
    "app.works.events": WORK_READER,
    "app.works.permits": WORK_READER,
    "app.works.counts": WORK_READER,
    "app.works.counts_by_contract": WORK_READER,
    "app.works.cancel": WORK_OPERATOR,
    "app.works.reconcile": WORK_OPERATOR,
    "app.works.resolve": WORK_OPERATOR,
    "app.works.retry_safe": WORK_OPERATOR,
    "app.works.release": WORK_OPERATOR,
    "app.works.release_all": WORK_OPERATOR,
    "app.works.purge": WORK_RETENTION,
    "app.scopes.get": WORK_READER,
    "app.scopes.disable": WORK_OPERATOR,
}
"""What a connection of the App needs, or the caller's where the call runs in his transaction."""
