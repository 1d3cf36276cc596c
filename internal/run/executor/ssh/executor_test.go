package ssh

import (
	"errors"
	"io"
	"slices"
	"testing"

	"skerry/internal/machine/inventory"
	"skerry/internal/run/executor"
)

// held is a run whose tasks have no plan, and end when permitted.
type held chan struct{}

func (h held) PackPlan([]int) ([]byte, error) {
	<-h
	return nil, errors.New("no plan")
}

func (held) ReceiveResults(io.Reader) (string, error) { return "", nil }

// A batch larger than the free capacity starts partially. If it were refused completely, a run would wait forever after
// one of its machines is excluded.
func TestExcludedMachineDoesNotBlockRun(t *testing.T) {
	h := make(held)
	e := New("machines.yaml", h)
	for _, name := range []string{"a", "b", "c"} {
		e.workers = append(e.workers, &worker{Entry: inventory.Entry{Name: name}})
	}
	e.workers[1].failed = failuresInARow
	b := executor.Batch{Tasks: []executor.Task{{ID: 7}, {ID: 8}, {ID: 9}}}
	submit := func(want ...int) {
		t.Helper()
		got, err := e.Submit(t.Context(), b)
		if err != nil || !slices.Equal(got.Tasks, want) {
			t.Errorf("%v were begun (%v), want %v", got.Tasks, err, want)
		}
	}
	submit(7, 8)
	if _, err := e.Submit(t.Context(), b); !errors.Is(err, executor.ErrFull) {
		t.Errorf("with all machines busy: got %v", err)
	}
	close(h)
	e.tasks.Wait()
	b.Exclude = []string{"c"}
	submit(7)
	e.tasks.Wait()
	b.Exclude = []string{"a", "c"} // the only machines
	submit(7, 8)
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
