package cloudsql

import (
	"testing"

	"skerry/systems/hydra/command"
)

// A number of any size is stored as it was written, and compared exactly.
func testNumbers(t *testing.T, url string) {
	s := open(t, url)
	const stored = "123456789012345678901234567890"
	deleteIf := func(index uint64, is command.Is, value string) Entry {
		return entry(t, index, command.Transaction{
			Checks: []command.Check{{Table: "accounts", Key: "ada", Is: is, Field: "balance", Value: []byte(value)}},
			Writes: []command.Write{write(command.Delete, "accounts", "ada", "")},
		})
	}
	applied, err := s.Apply(t.Context(), "one", 0, []Entry{
		entry(t, 1, command.Transaction{Writes: []command.Write{write(command.CreateTable, "accounts", "", "")}}),
		entry(t, 2, command.Transaction{Writes: []command.Write{write(command.Put, "accounts", "ada", `{"balance":`+stored+`}`)}}),
	})
	if err != nil {
		t.Fatal(err)
	}
	for index, check := range []struct {
		is          command.Is
		value, want string
	}{
		{command.Equal, "123456789012345678901234567891", command.CheckFailed},
		{command.NotEqual, stored + ".0", command.CheckFailed},
		{command.Greater, stored, command.CheckFailed},
		{command.Equal, stored, command.OK},
	} {
		applied, err = s.Apply(t.Context(), "one", applied.Index, []Entry{deleteIf(uint64(index)+3, check.is, check.value)})
		if err != nil {
			t.Fatal(err)
		}
		if got := applied.Results[0].Outcome.Code; got != check.want {
			t.Errorf("%s %s %s: %s, want %s", stored, check.is, check.value, got, check.want)
		}
	}
}
