package hydra

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"skerry/systems/hydra/api"
	"skerry/systems/hydra/command"
	"skerry/systems/hydra/hydraclient"
	"skerry/test/registers"
	"skerry/test/testkit"
)

// TestMain runs the test binary as a member if its argument is a configuration.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "member" {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		if err := runMember(ctx, os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func runMember(ctx context.Context, text string) error {
	var c Config
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	s, err := Open(ctx, c, "test", slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		return err
	}
	fmt.Println("serving")
	return s.Run(ctx)
}

// process is a member in a separate process that the test can kill.
type process struct {
	t      *testing.T
	config Config
	cmd    *exec.Cmd
	client *hydraclient.Client
}

// start starts or restarts the process and returns when the member responds.
func (p *process) start() {
	p.t.Helper()
	text, err := json.Marshal(p.config)
	if err != nil {
		p.t.Fatal(err)
	}
	p.cmd = exec.Command(os.Args[0], "member", string(text))
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	log, err := os.OpenFile(filepath.Join(filepath.Dir(p.config.Data), p.config.Name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		p.t.Fatal(err)
	}
	defer log.Close()
	p.cmd.Stderr = log
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		text, _ := os.ReadFile(log.Name())
		p.t.Fatalf("%s did not start: %v\n%s", p.config.Name, errors.Join(err, p.cmd.Wait()), text)
	}
	go io.Copy(io.Discard, out) // returns when the process ends
}

func (p *process) kill() {
	if p.cmd != nil {
		_ = p.cmd.Process.Kill() // it may have exited
		_ = p.cmd.Wait()
		p.cmd = nil
	}
}

// startProcesses starts two clouds of one member each and a witness.
func startProcesses(t *testing.T) []*process {
	t.Helper()
	all := planProcesses(t)
	for _, p := range all {
		p.start()
	}
	return all
}

// planProcesses configures the processes without starting them, and kills them at the end of the test.
func planProcesses(t *testing.T) []*process {
	t.Helper()
	dir := t.TempDir()
	clouds := []string{"east", "west", "between"}
	var members []MemberConfig
	var all []*process
	for i, cloud := range clouds {
		c := Defaults()
		c.Cluster, c.Name, c.Cloud, c.ID = "test", "m"+strconv.Itoa(i), cloud, uint64(i+1)
		c.Listen, c.Peer, c.Data, c.Drain = testkit.Address(t), testkit.Address(t), filepath.Join(dir, cloud, "data"), 0
		c.Witness = i == 2
		members = append(members, MemberConfig{ID: c.ID, Name: c.Name, Cloud: cloud, Peer: c.Peer, API: c.Listen, Witness: c.Witness})
		all = append(all, &process{t: t, config: c})
	}
	for _, p := range all {
		p.config.Members = members
		var err error
		if p.client, err = hydraclient.New(hydraclient.Config{Endpoints: []string{p.config.Listen}, Timeout: patience}); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(p.config.Data), 0o700); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.kill(); p.client.Close() })
	}
	return all
}

// TestKills transfers money between accounts and writes registers while members, including the leader, are killed
// with SIGKILL and restarted. No transfer may be lost, duplicated or half done, and the registers must be
// linearizable. SKERRY_SEED repeats the choice of victims; SKERRY_KILLS sets their number.
func TestKills(t *testing.T) {
	seed, kills := settingUint(t, "SKERRY_SEED", rand.Uint64N(1e6)), settingUint(t, "SKERRY_KILLS", 3)
	t.Logf("SKERRY_SEED=%d SKERRY_KILLS=%d repeat this", seed, kills)
	all := startProcesses(t)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	const accounts, money = 4, 100
	eventually(t, "a leader", func() bool { return all[0].client.CreateTable(ctx, "t", hydraclient.Ack(api.Everywhere)) == nil })
	for i := range accounts {
		if _, err := all[0].client.Put(ctx, "t", fmt.Sprint("account", i), map[string]int{"money": money, "transfers": 0}); err != nil {
			t.Fatal(err)
		}
	}
	var work sync.WaitGroup
	working, stop := context.WithCancel(ctx)
	var mu sync.Mutex
	history := registers.New()
	done := 0
	for i := range 4 {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		c := newTestClient(t, all[i%2].config.Listen, all[1-i%2].config.Listen)
		work.Go(func() {
			for working.Err() == nil {
				if i < 2 {
					if transfer(ctx, c, r, accounts) == nil {
						mu.Lock()
						done++
						mu.Unlock()
					}
					continue
				}
				history.Do(ctx, c, "t", i, registers.Draw(r, "register0", "register1"))
			}
		})
	}
	r := rand.New(rand.NewPCG(seed, 99))
	for range kills {
		pause(ctx, time.Duration(200+r.IntN(400))*time.Millisecond)
		victim := all[r.IntN(len(all))]
		victim.kill()
		pause(ctx, time.Duration(r.IntN(600))*time.Millisecond)
		victim.start()
		eventually(t, victim.config.Name+" knows the leader", func() bool {
			s, err := victim.client.Status(ctx)
			return err == nil && s.Leader != ""
		})
	}
	stop()
	work.Wait()
	for _, p := range all[:2] {
		sum, transfers := 0, 0
		page, err := p.client.Scan(ctx, "t", hydraclient.Page{Prefix: "account"})
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range page.Rows {
			var v struct{ Money, Transfers int }
			if err := json.Unmarshal(row.Value, &v); err != nil {
				t.Fatal(err)
			}
			sum += v.Money
			transfers += v.Transfers
		}
		if sum != accounts*money || transfers < 2*done {
			t.Errorf("in %s: total balance %d, want %d; %d transfers, %d acknowledged", p.config.Cloud, sum, accounts*money, transfers/2, done)
		}
	}
	t.Logf("%d transfers, %d operations on registers", done, history.Len())
	history.Check(t, time.Minute)
}

func newTestClient(t *testing.T, endpoints ...string) *hydraclient.Client {
	t.Helper()
	c, err := hydraclient.New(hydraclient.Config{Endpoints: endpoints, Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func settingUint(t *testing.T, name string, missing uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return missing
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// pause sleeps for d or until the context is done.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// transfer moves money between two accounts. Its request ID makes retries safe until a member responds.
func transfer(ctx context.Context, c *hydraclient.Client, r *rand.Rand, accounts int) error {
	from, amount := r.IntN(accounts), 1+r.IntN(30)
	to := (from + 1 + r.IntN(accounts-1)) % accounts
	key := func(i int) string { return fmt.Sprint("account", i) }
	change := func(i, by int) api.Write {
		return api.Write{Do: command.Add, Table: "t", Key: key(i), Value: fmt.Appendf(nil, `{"money":%d,"transfers":1}`, by)}
	}
	t := api.Transaction{
		RequestID: hydraclient.NewRequestID(),
		Checks:    []api.Check{{Table: "t", Key: key(from), Is: command.GreaterOrEqual, Field: "money", Value: fmt.Appendf(nil, "%d", amount)}},
		Writes:    []api.Write{change(from, -amount), change(to, amount)},
	}
	for {
		_, err := c.Transact(ctx, t)
		if err == nil || errors.Is(err, hydraclient.ErrCheckFailed) || ctx.Err() != nil {
			return err
		}
	}
}
