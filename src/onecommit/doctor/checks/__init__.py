"""Every check, in the order of the report."""

from onecommit.doctor.checks import (
    clock,
    constructs,
    definitions,
    objects,
    ownership,
    public_grants,
    ring,
    role_grants,
    routine_bodies,
    routine_headers,
    row_security,
    runtime_roles,
    store,
    system_catalog,
    triggers,
)

CHECKS = (
    store.CHECK,
    routine_bodies.CHECK,
    routine_headers.CHECK,
    clock.CHECK,
    constructs.CHECK,
    ownership.CHECK,
    public_grants.CHECK,
    role_grants.CHECK,
    runtime_roles.CHECK,
    row_security.CHECK,
    triggers.CHECK,
    ring.CHECK,
    objects.CHECK,
    definitions.CHECK,
    system_catalog.CHECK,
)
