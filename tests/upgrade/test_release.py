"""What was released stays as it is."""

from onecommit.schema import packaged_bundle

from tests.upgrade import release


def test_the_frozen_wheel_is_the_one_that_its_readme_names():
    """A wheel that was built again would not be the previous version."""
    assert release.sha256() in (release.HERE / "README.md").read_text()


def test_released_migrations_are_not_edited():
    """A store that applied them would be refused as inconsistent; a change is a new migration."""
    released = release.bundle().migrations
    assert packaged_bundle().migrations[: len(released)] == released
