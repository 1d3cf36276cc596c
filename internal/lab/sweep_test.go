package lab

import (
	"os"
	"strings"
	"testing"

	"skerry/internal/machine/journal"
	"skerry/internal/machine/network"
)

func TestSweepKeepsUnreadableLabs(t *testing.T) {
	c := config(t, "unread")
	c.Ephemeral = false
	l, err := Up(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(placeOf(t, c).Path(journal.RecordFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if swept, err := Sweep(t.Context(), c.StateDir); err == nil || !strings.Contains(err.Error(), c.Name) || len(swept) > 0 {
		t.Errorf("swept %v, %v; want an error that names %s", swept, err, c.Name)
	}
	if _, err := Up(t.Context(), c); err == nil {
		t.Error("Up succeeded over a lab that may be running")
	}
	if !network.Mounted(placeOf(t, c).Namespaces()) {
		t.Error("Sweep removed the lab")
	}
	if err := Remove(t.Context(), c.StateDir, c.Name); err != nil {
		t.Error(err)
	}
	noTraces(t, c)
}
