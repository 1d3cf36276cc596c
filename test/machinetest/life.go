package machinetest

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skerry/internal/base/linger"
	"skerry/internal/link"
	"skerry/internal/machine"
)

func isRefused(err error) bool { return errors.Is(err, unix.ECONNREFUSED) }

// found returns the test's part from List; ok is false without one.
func (s Site) found(t *testing.T) (machine.PartStatus, bool) {
	t.Helper()
	all, err := s.Other.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(f machine.PartStatus) bool { return f.Name == s.Lab })
	if i < 0 {
		return machine.PartStatus{}, false
	}
	return all[i], true
}

// A part without an owner outlives its process: another process finds it, adopts its links, changes it and ends it.
func testAnother(t *testing.T, s Site) {
	p := up(t, s, s.partSpec())
	made := p.Facts()
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if swept, err := s.Other.Sweep(t.Context()); err != nil || len(swept) > 0 {
		t.Errorf("Sweep cleared %v, %v; want the part kept", swept, err)
	}
	f, ok := s.found(t)
	if !ok || f.State != machine.Up || f.Facts.ID != made.ID || string(f.Facts.Lab) != `{"name":"contract"}` || string(f.Note) != `{"factor":1}` {
		t.Errorf("found %+v (%t)", f, ok)
	}
	q, err := s.Other.Open(t.Context(), s.Lab)
	if err != nil {
		t.Fatal(err)
	}
	if err := q.AdoptLinks(t.Context(), Links()); err != nil {
		t.Fatal(err)
	}
	answered(t, q)
	if err := q.ShapeLinks(t.Context(), []link.Change{{ID: linkID, AB: &link.Quality{Latency: 2 * latency}}}); err != nil {
		t.Error(err)
	}
	if err := q.Close(); err != nil {
		t.Error(err)
	}
	if err := s.Other.Remove(t.Context(), s.Lab); err != nil {
		t.Error(err)
	}
	s.Left(t)
}

// A process that changes a part without an owner excludes others meanwhile.
func testChanges(t *testing.T, s Site) {
	p := up(t, s, s.partSpec())
	q, err := s.Other.Open(t.Context(), s.Lab)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), silence)
	defer cancel()
	if err := q.Lock(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a second lock: %v", err)
	}
	if err := errors.Join(p.SetNote(t.Context(), json.RawMessage(`{"factor":2}`)), p.Unlock()); err != nil {
		t.Fatal(err)
	}
	if err := q.Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	if note, err := q.Note(t.Context()); err != nil || string(note) != `{"factor":2}` {
		t.Errorf("the note: %s, %v", note, err)
	}
	if err := q.Unlock(); err != nil {
		t.Error(err)
	}
	for i := range 40 {
		abandoned(t, p, q, time.Duration(i)*patience/40)
	}
	if err := q.Close(); err != nil {
		t.Error(err)
	}
}

// patience exceeds the time in which a machine notices a released lock.
const patience = 20 * time.Millisecond

// abandoned releases a lock while another caller's wait times out. Afterwards that caller holds the lock if it was told so;
// otherwise no caller does.
func abandoned(t *testing.T, p, q machine.Part, after time.Duration) {
	t.Helper()
	if err := p.Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	waited := make(chan error, 1)
	go func() { waited <- q.Lock(ctx) }()
	if err := linger.For(t.Context(), patience); err != nil {
		t.Fatal(err)
	}
	if err := p.Unlock(); err != nil {
		t.Fatal(err)
	}
	if err := linger.For(t.Context(), after); err != nil {
		t.Fatal(err)
	}
	giveUp()
	if err := <-waited; err == nil {
		if err := q.Unlock(); err != nil {
			t.Fatal(err)
		}
	} else if !errors.Is(err, context.Canceled) {
		t.Fatalf("an abandoned lock: %v", err)
	}
	again, end := context.WithTimeout(t.Context(), 10*time.Second)
	defer end()
	if err := p.Lock(again); err != nil {
		t.Fatalf("after an abandoned lock: %v", err)
	}
	if err := p.Unlock(); err != nil {
		t.Fatal(err)
	}
}

// Other processes cannot change or end an owned part while its owner lives.
func testOwned(t *testing.T, s Site) {
	p := up(t, s, s.owned())
	if f, ok := s.found(t); !ok || f.State != machine.Owned || f.Owner == 0 {
		t.Errorf("found %+v (%t)", f, ok)
	}
	if swept, err := s.Other.Sweep(t.Context()); err != nil || len(swept) > 0 {
		t.Errorf("Sweep cleared %v, %v", swept, err)
	}
	if err := s.Other.Remove(t.Context(), s.Lab); !errors.Is(err, machine.ErrInUse) {
		t.Errorf("Remove: %v, want ErrInUse", err)
	}
	q, err := s.Other.Open(t.Context(), s.Lab)
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Lock(t.Context()); !errors.Is(err, machine.ErrInUse) {
		t.Errorf("Lock by another: %v, want ErrInUse", err)
	}
	if err := errors.Join(q.Close(), p.Lock(t.Context()), p.Unlock()); err != nil {
		t.Error(err)
	}
	answered(t, p)
}

// Whenever the owner is killed, Sweep leaves nothing behind, and neither does a new lab with the same name.
func testKilled(t *testing.T, s Site) {
	for _, step := range []Step{Prepared, Made, Linked, Kept} {
		s.Die(t, s.owned(), step)
		if f, ok := s.found(t); !ok || f.State != machine.Dead {
			t.Errorf("killed when %s: found %+v (%t), want a dead lab", step, f, ok)
		}
		for i := range 2 {
			swept, err := s.Machine.Sweep(t.Context())
			if want := i == 0; err != nil || slices.Contains(swept, s.Lab) != want {
				t.Errorf("killed when %s, sweep %d: %v, %v", step, i, swept, err)
			}
		}
		s.Left(t)
		s.Die(t, s.owned(), step)
		p, err := Bring(t.Context(), s.Machine, s.owned(), func(Step) {})
		if err != nil {
			t.Errorf("killed when %s, brought up again: %v", step, err)
		}
		if p != nil {
			if err := p.Down(t.Context()); err != nil {
				t.Error(err)
			}
		}
		s.Left(t)
	}
}

// A part whose emulator has ended is reported as damaged. Its links cannot be adopted, but it can be ended.
func testDamage(t *testing.T, s Site) {
	p := up(t, s, s.partSpec())
	pid, ended := p.Facts().Emulator, p.Ended()
	if pid == 0 {
		t.Skip("the kernel moves the packets")
	}
	s.Kill(t, pid)
	<-ended
	var f machine.PartStatus
	for deadline := time.Now().Add(time.Minute); f.State != machine.Damaged && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		f, _ = s.found(t)
	}
	if f.State != machine.Damaged || f.Problem == "" {
		t.Errorf("found %+v; want a damaged lab", f)
	}
	q, err := s.Other.Open(t.Context(), s.Lab)
	if err != nil {
		t.Fatal(err)
	}
	if err := q.AdoptLinks(t.Context(), Links()); !errors.Is(err, machine.ErrDamaged) {
		t.Errorf("Adopt: %v, want ErrDamaged", err)
	}
	if err := errors.Join(q.Close(), s.Other.Remove(t.Context(), s.Lab)); err != nil {
		t.Error(err)
	}
	s.Left(t)
}
