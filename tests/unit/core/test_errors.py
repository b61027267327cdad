"""What a caller is told who named something wrong: the words say what to do."""

from rgd.core.errors import CoreError, GroupInUse, UnknownGroup


def test_the_words_name_the_group_and_the_remedy() -> None:
    unknown, in_use = UnknownGroup("gold"), GroupInUse("gold", "namespace 'acme/orders'")
    assert str(unknown) == "group 'gold' does not exist; GET /v1/groups lists the groups"
    assert str(in_use) == "group 'gold' is in use by namespace 'acme/orders'; detach it first"
    assert unknown.group == in_use.group == "gold"


def test_none_of_them_goes_away_by_itself() -> None:
    assert not CoreError.transient
