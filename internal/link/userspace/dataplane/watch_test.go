package dataplane

import (
	"bytes"
	"context"
	"encoding/binary"
	"runtime"
	"sync"
	"testing"
	"time"

	"skerry/internal/link"
)

// A thread without a CPU stops nothing, whichever it is. Here it has not even started.
func TestThreadCoversForOther(t *testing.T) {
	for _, away := range []int{0, 1} {
		back := make(chan struct{})
		c := connectWith(t, Options{Threads: 2, Memory: 16 << 20, Prepare: func(thread int) {
			if thread == away {
				<-back
			}
		}}, link.Quality{Latency: time.Millisecond}, link.Quality{})
		want := tcp(1000, 0)
		for range 100 {
			send(t, c.a, want)
			if got := receive(t, c.b, soon); !bytes.Equal(got, want) {
				t.Fatalf("without thread %d, %d bytes arrived", away, len(got))
			}
		}
		close(back)
	}
}

// A link keeps its order and loses nothing, whichever threads read and send.
func TestOrderIsKept(t *testing.T) {
	const packets, window = 20_000, 100
	for _, latency := range []time.Duration{0, 300 * time.Microsecond} {
		c := connect(t, link.Quality{Latency: latency}, link.Quality{})
		b := tcp(100, 0)
		sent := uint32(0)
		for want := range uint32(packets) {
			for sent < min(want+window, packets) {
				binary.BigEndian.PutUint32(b[len(b)-4:], sent)
				send(t, c.a, b)
				sent++
			}
			got := receive(t, c.b, soon)
			if got == nil {
				t.Fatalf("latency %v: packet %d is missing", latency, want)
			}
			if n := binary.BigEndian.Uint32(got[len(got)-4:]); n != want {
				t.Fatalf("latency %v: got packet %d, want packet %d", latency, n, want)
			}
		}
	}
}

func TestDelegates(t *testing.T) {
	const now, ms = int64(time.Second), int64(time.Millisecond)
	for name, tt := range map[string]struct {
		vouch int64
		due   int64
		want  int64 // time of the thread's next check
	}{
		"awake":               {now - ms/100, now + ms, now + ms + grace},
		"asleep until then":   {now + ms, now + ms, now + ms + grace},
		"asleep beyond":       {never, now + ms, now + ms},
		"check overdue":       {now - ms, now + ms, now + ms},
		"due already":         {now + ms, now - ms, now - ms},
		"no packet in flight": {now, never, never},
		"returned late":       {now - ms, now - 2*ms, now - 2*ms},
	} {
		p := &Plane{}
		first, second := &worker{Plane: p}, &worker{Plane: p, number: 1}
		p.workers = []*worker{first, second}
		p.queue.next.Store(tt.due)
		first.vouch.Store(tt.vouch)
		if got := second.nextWake(now); got != tt.want {
			t.Errorf("%s: looks %v from now, want %v", name, time.Duration(got-now), time.Duration(tt.want-now))
		}
		if got := first.nextWake(now); got != tt.due {
			t.Errorf("%s: the first thread trusts the second", name)
		}
	}
}

// Go's collector stops all threads. A thread that waits for another one, which waits for the collector, must not block
// it.
func TestCollectorDoesNotWait(t *testing.T) {
	c := connect(t, link.Quality{Latency: 50 * time.Microsecond}, link.Quality{})
	var busy sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	busy.Go(func() {
		for ctx.Err() == nil {
			runtime.GC()
		}
	})
	busy.Go(func() {
		for ctx.Err() == nil {
			if err := c.plane.Set(ctx, nil); err != nil && ctx.Err() == nil {
				t.Error(err)
				return
			}
		}
	})
	want := tcp(30_000, 1000)
	for range 3000 {
		send(t, c.a, want)
		if got := receive(t, c.b, time.Minute); len(got) != len(want) {
			t.Fatalf("%d bytes arrived", len(got))
		}
	}
	stop()
	busy.Wait()
}

// The lead is the duration of a wake-up after sleeps of this length.
func TestAlarmLearnsLead(t *testing.T) {
	const us = int64(time.Microsecond)
	sleeps := []struct{ sleep, late int64 }{{100 * us, 15 * us}, {5000 * us, 60 * us}}
	var a alarm
	now := int64(0)
	for range 200 {
		for _, s := range sleeps {
			now += a.set(now, now+s.sleep) + s.late
			a.observe(now, true)
		}
	}
	for _, s := range sleeps {
		due := now + s.sleep
		now += a.set(now, due) + s.late
		if off := due - now; off < -us || off > 6*us {
			t.Errorf("after a sleep of %v woken %v before due, want at most 6 us", time.Duration(s.sleep), time.Duration(off))
		}
		a.observe(now, true)
	}
	for _, s := range sleeps {
		if got, want := a.wakeLatency(s.sleep), min(s.late, maxUsual); got > want+us || got < want-us {
			t.Errorf("wake-up duration after %v: got %v, want %v", time.Duration(s.sleep), time.Duration(got), time.Duration(want))
		}
	}
	for range 200 {
		now += a.set(now, now+int64(time.Second)) + int64(time.Second)
		a.observe(now, true)
	}
	if got := a.lead[1]; got > maxLead {
		t.Errorf("the lead grew to %v", time.Duration(got))
	}
}
