package wallet

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"skerry/systems/hydra/command"
)

// TestHistoryIsInLogOrder runs orders concurrently in wallets whose clocks differ, jump and go back. The history of
// each account must be in the order in which the log applied them.
func TestHistoryIsInLogOrder(t *testing.T) {
	m := newMemory()
	names := []string{"a", "b", "c"}
	opened(t, m, names...)
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(3, 3))
	drawn := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return random.IntN(n)
	}
	clock := func() time.Time { return time.Unix(1e9, 0).Add(time.Duration(drawn(1e6)) * time.Hour) }
	accounts := map[string][]string{} // by order
	var all sync.WaitGroup
	for i := range 8 {
		w := New(m, clock)
		all.Go(func() {
			for k := range 100 {
				id, from := fmt.Sprintf("%d.%d", i, k), drawn(3)
				of := []string{names[from], names[(from+1)%3]}
				var err error
				if k%3 == 0 {
					of = of[:1]
					_, err = w.Deposit(t.Context(), id, of[0], 100)
				} else {
					_, err = w.Transfer(t.Context(), id, of[0], of[1], 1)
				}
				if err != nil && !errors.Is(err, ErrInsufficient) {
					t.Errorf("%s: %v", id, err)
				}
				mu.Lock()
				accounts[id] = of
				mu.Unlock()
			}
		})
	}
	all.Wait()
	for _, name := range names {
		var want []string
		for _, id := range slices.Backward(m.log) {
			if slices.Contains(accounts[id], name) && len(want) < maxHistory {
				want = append(want, id)
			}
		}
		got, _, err := New(m, clock).History(t.Context(), name)
		var ids []string
		for _, e := range got {
			ids = append(ids, e.ID)
		}
		if err != nil || len(ids) != maxHistory || !slices.Equal(ids, want) {
			t.Errorf("history of %s, %v:\n%v\nwant\n%v", name, err, ids, want)
		}
	}
}

// TestOldHistory checks that an account from before entries were numbered still works and lists its old entries
// after the new ones.
func TestOldHistory(t *testing.T) {
	m := newMemory()
	w := opened(t, m, "ada")
	if err := w.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.SetRow(Accounts, "ada", command.Row{Version: 1, Value: []byte(`{"balance":5}`)})
	m.SetRow(Entries, fmt.Sprintf("ada/%016x-old", uint64(1<<63-1-time.Now().UnixMicro())),
		command.Row{Version: 1, Value: []byte(`{"kind":"deposit","to":"ada","amount_cents":5,"id":"old"}`)})
	for i := range 20 {
		if _, err := w.Deposit(t.Context(), fmt.Sprint("new-", i), "ada", 1); err != nil {
			t.Fatal(err)
		}
	}
	all, _, err := w.History(t.Context(), "ada")
	if err != nil || len(all) != 21 || all[0].ID != "new-19" || all[20].ID != "old" {
		t.Errorf("%+v, %v", all, err)
	}
}
