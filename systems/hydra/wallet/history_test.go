package wallet

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"
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
