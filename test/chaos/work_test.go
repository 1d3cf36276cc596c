package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/go-cmp/cmp"

	"skerry/systems/hydra/api"
	"skerry/systems/hydra/deploy"
	"skerry/systems/hydra/hydraclient"
	"skerry/test/registers"
)

// work is the load during the faults.
type work struct {
	w       *world
	door    *deploy.Door
	began   time.Time
	stop    context.CancelFunc
	done    sync.WaitGroup
	history *registers.History

	big     atomic.Int64 // acknowledged rows of 1 MiB
	audits  atomic.Int64 // audits in which the accounts added up
	refused atomic.Int64 // refused requests of pages

	mu       sync.Mutex
	balances map[string]int64 // balances of the wallet's accounts according to its acknowledgements
	orders   int
	longest  time.Duration // maximum time until an order was acknowledged
}

const (
	accounts = 4
	money    = 1000
	// epoch bounds the use of a register, so that each check stays small.
	epoch = 2 * time.Second
	// pace is the interval between two operations of a worker.
	pace = 10 * time.Millisecond
)

// begin starts workers on registers, at different places, and on the wallet, by its name.
func begin(w *world, seed uint64) *work {
	w.t.Helper()
	k := &work{w: w, began: time.Now(), history: registers.New(), balances: map[string]int64{}}
	ctx, stop := context.WithCancel(w.t.Context())
	k.stop = stop
	var err error
	if k.door, err = deploy.OpenDoor(w.t.Context(), "127.0.0.1:0", w.layout.DNS, deploy.HostPort(w.layout.DNS, deploy.PortDNS), zone, deploy.PortLB); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { stop(); k.done.Wait(); k.door.Close() })
	a, b := w.layout.Clouds[0], w.layout.Clouds[1]
	front := w.data(w.balancers()...)
	w.t.Cleanup(func() { front.Close() })
	for _, table := range []string{"t", "big"} {
		if err := front.CreateTable(ctx, table, hydraclient.Ack(api.Everywhere)); err != nil {
			w.t.Fatal(err)
		}
	}
	for i := range accounts {
		k.order(ctx, "accounts", fmt.Sprint("open-", i), map[string]any{"name": account(i)})
		k.order(ctx, "deposits", fmt.Sprint("fill-", i), map[string]any{"to": account(i), "amount_cents": money})
		k.balances[account(i)] = money
	}
	for i, at := range [][]string{
		{deploy.HostPort(a.Edge, deploy.PortLB), deploy.HostPort(b.Edge, deploy.PortLB)},
		{deploy.HostPort(b.Edge, deploy.PortLB), deploy.HostPort(a.Edge, deploy.PortLB)},
		{deploy.HostPort(a.Members[0], deploy.PortAPI)},
		{deploy.HostPort(b.Members[1], deploy.PortAPI)},
	} {
		c := w.data(at...)
		w.t.Cleanup(func() { c.Close() })
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		k.done.Go(func() {
			for ctx.Err() == nil {
				now := time.Since(k.began) / epoch
				k.history.Do(w.t.Context(), c, "t", i, registers.Draw(r, fmt.Sprintf("r-%d-0", now), fmt.Sprintf("r-%d-1", now)))
				time.Sleep(pace)
			}
		})
	}
	for i := range 3 {
		r := rand.New(rand.NewPCG(seed, uint64(10+i)))
		k.done.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				k.transfer(w.t.Context(), r, fmt.Sprintf("transfer-%d-%d", i, n))
				time.Sleep(pace)
			}
		})
	}
	for i, c := range w.layout.Clouds {
		r := rand.New(rand.NewPCG(seed, uint64(20+i)))
		data := w.data(deploy.HostPort(c.Edge, deploy.PortLB))
		w.t.Cleanup(func() { data.Close() })
		k.done.Go(func() { k.weigh(ctx, r, "big-"+c.Name, data) })
		k.done.Go(func() { k.audit(ctx, c) })
	}
	k.done.Go(func() { k.browse(ctx) })
	return k
}

func account(i int) string { return fmt.Sprint("account-", i) }

// end lets the workers complete their current operations.
func (k *work) end() {
	k.stop()
	k.done.Wait()
}

// transfer places an order, which is executed once or not at all.
func (k *work) transfer(ctx context.Context, r *rand.Rand, key string) {
	from, amount := r.IntN(accounts), int64(1+r.IntN(400))
	to := (from + 1 + r.IntN(accounts-1)) % accounts
	began := time.Now()
	done := k.order(ctx, "transfers", key, map[string]any{"from": account(from), "to": account(to), "amount_cents": amount})
	k.mu.Lock()
	defer k.mu.Unlock()
	k.longest = max(k.longest, time.Since(began))
	if done {
		k.orders++
		k.balances[account(from)] -= amount
		k.balances[account(to)] += amount
	}
}

// order retries an order with its key until the wallet reports the outcome.
func (k *work) order(ctx context.Context, path, key string, body any) (done bool) {
	text, _ := json.Marshal(body) // of strings and numbers
	for {
		status, answer := k.sendRequest(ctx, http.MethodPost, "/api/"+path, key, string(text))
		switch {
		case status == http.StatusOK:
			return true
		case status == http.StatusConflict:
			return false
		case ctx.Err() != nil:
			k.w.t.Errorf("%s: unknown outcome: %d %s", key, status, answer)
			return false
		}
		time.Sleep(pace)
	}
}

func (k *work) sendRequest(ctx context.Context, method, path, key, body string) (int, string) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, k.door.URL()+path, strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	req.Close = true // each queries the DNS server again
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(text)
}

// check compares the final state with the acknowledgements.
func (k *work) check() {
	t := k.w.t
	t.Logf("%d transfers, the slowest after %.1f s; %d operations on registers", k.orders, k.longest.Seconds(), k.history.Len())
	var sum struct {
		Sum struct {
			Total     int64 `json:"total_cents"`
			Deposited int64 `json:"deposited_cents"`
			Holds     bool
		}
	}
	status, text := k.sendRequest(t.Context(), http.MethodGet, "/api/sum", "", "")
	if err := json.Unmarshal([]byte(text), &sum); err != nil || status != http.StatusOK {
		t.Fatalf("querying the sum: %d %s, %v", status, text, err)
	}
	if !sum.Sum.Holds || sum.Sum.Total != accounts*money {
		t.Errorf("the sum is %s", text)
	}
	// Each cloud's database, after it has applied all committed entries.
	var tables []map[string]map[string]string
	for _, c := range k.w.layout.Clouds {
		data := k.w.data(deploy.HostPort(c.Members[0], deploy.PortAPI))
		defer data.Close()
		tables = append(tables, contents(k, data))
		if got := balances(k, tables[len(tables)-1]["wallet_accounts"]); !cmp.Equal(got, k.balances) {
			t.Errorf("balances in %s (-acknowledged +stored): %s", c.Name, cmp.Diff(k.balances, got))
		}
	}
	if d := cmp.Diff(tables[0], tables[1]); d != "" {
		t.Errorf("the clouds differ: %s", d[:min(len(d), 4000)])
	}
	if tables[0]["evil"] != nil || k.refused.Load() == 0 || k.audits.Load() == 0 {
		t.Errorf("%d requests of pages were refused, %d audits succeeded, tables %v", k.refused.Load(), k.audits.Load(), slices.Sorted(maps.Keys(tables[0])))
	}
	k.history.Check(t, 30*time.Second)
}

// contents returns all rows of a cloud's database, with versions.
func contents(k *work, data *hydraclient.Client) map[string]map[string]string {
	ctx, cancel := context.WithTimeout(k.w.t.Context(), patience)
	defer cancel()
	all := map[string]map[string]string{}
	names, err := data.Tables(ctx)
	if err != nil {
		k.w.t.Fatal(err)
	}
	for _, name := range names {
		rows := map[string]string{}
		page := hydraclient.Page{Limit: 500}
		for {
			// The first page waits until all committed entries are applied here.
			got, err := data.Scan(ctx, name, page, hydraclient.Read(api.Linearizable))
			if err != nil {
				k.w.t.Fatal(err)
			}
			for _, r := range got.Rows {
				rows[r.Key] = fmt.Sprint(r.Version, " ", string(r.Value))
			}
			if got.Next == "" {
				break
			}
			page.After = got.Next
		}
		all[name] = rows
	}
	return all
}

// balances returns the balances of the customers.
func balances(k *work, rows map[string]string) map[string]int64 {
	all := map[string]int64{}
	for i := range accounts {
		_, text, _ := strings.Cut(rows[account(i)], " ")
		var v struct {
			Balance int64 `json:"balance"`
		}
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			k.w.t.Errorf("%s is %q: %v", account(i), rows[account(i)], err)
		}
		all[account(i)] = v.Balance
	}
	return all
}
