package hydra

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"skerry/internal/database"
	"skerry/internal/database/daemon"
	"skerry/internal/load"
	"skerry/internal/machine/host"
	"skerry/systems/hydra/api"
	"skerry/systems/hydra/deploy"
	"skerry/systems/hydra/hydraclient"
	"skerry/systems/hydra/wallet"
)

// application is one worker's client of the wallet, where a record is an account.
//
//	insert  POST /api/accounts   opens an empty account
//	update  POST /api/deposits   deposits a cent: one transaction over account, bank and history
//	read    GET /api/accounts/…  reads the balance
//
// Each worker has one connection, to the first reachable address of the DNS answer. When the
// connection ends, the worker resolves the name again.
type application struct {
	client *http.Client
	server string // what errors call it
	id     string // of this worker, before each request's number
	sent   int64
}

var _ load.Client = (*application)(nil)

func openApplication(s settings) *application {
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		all, err := lookupWallet(ctx, s.walletDNS)
		if err != nil {
			return nil, &net.OpError{Op: "dial", Net: network, Err: err}
		}
		var failed error
		for _, addr := range all {
			d := net.Dialer{Timeout: time.Second}
			conn, err := d.DialContext(ctx, network, addr)
			if err == nil {
				return conn, nil
			}
			failed = errors.Join(failed, err)
		}
		return nil, failed
	}
	return &application{
		client: &http.Client{Transport: &http.Transport{DisableCompression: true, DialContext: dial, MaxConnsPerHost: 1}, Timeout: s.timeout},
		server: net.JoinHostPort(zone, strconv.Itoa(deploy.PortLB)),
		id:     strconv.FormatUint(rand.Uint64(), 36) + "-",
	}
}

func (a *application) send(ctx context.Context, method, path string, body any) ([]byte, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, load.Failed(database.ClassOther, a.server, err)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+a.server+path, bytes.NewReader(text))
	if err != nil {
		return nil, load.Failed(database.ClassOther, a.server, err)
	}
	if body == nil {
		req.Body, req.ContentLength = http.NoBody, 0
	} else {
		a.sent++
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set(api.HeaderRequestID, a.id+strconv.FormatInt(a.sent, 10))
	}
	return database.DoRequest(a.client, req, a.server)
}

func (a *application) Read(ctx context.Context, _, key string, _ []string, dst []load.Field) ([]load.Field, error) {
	answer, err := a.send(ctx, http.MethodGet, "/api/accounts/"+url.PathEscape(key), nil)
	if err != nil {
		return dst, err
	}
	var found struct {
		Account *struct {
			Balance json.Number `json:"balance_cents"`
		} `json:"account"`
	}
	if err := json.Unmarshal(answer, &found); err != nil {
		return dst, load.Failed("protocol", a.server, fmt.Errorf("the wallet answered %.100q: %w", answer, err))
	}
	if found.Account == nil {
		return dst, load.Failed("protocol", a.server, fmt.Errorf("the wallet answered without an account: %.100q", answer))
	}
	return append(dst, load.Field{Name: "balance", Value: []byte(found.Account.Balance)}), nil
}

// Insert implements load.Client. An existing account is a success, because loads repeat inserts in doubt.
func (a *application) Insert(ctx context.Context, _, key string, _ []load.Field) error {
	_, err := a.send(ctx, http.MethodPost, "/api/accounts", map[string]any{"name": key})
	if op := new(load.OpError); errors.As(err, &op) && op.Class == conflictClass {
		return nil
	}
	return err
}

// conflictClass is the error class for an account that exists already.
var conflictClass = "http_" + strconv.Itoa(http.StatusConflict)

func (a *application) Update(ctx context.Context, _, key string, _ []load.Field) error {
	_, err := a.send(ctx, http.MethodPost, "/api/deposits", map[string]any{"to": key, "amount_cents": 1})
	return err
}

// Scan implements load.Client: the wallet has no such request.
func (*application) Scan(context.Context, string, string, int, []string, func(string, []load.Field)) (int, error) {
	return 0, load.ErrUnsupported
}

// Delete implements load.Client: accounts stay.
func (*application) Delete(context.Context, string, string) error { return load.ErrUnsupported }

func (a *application) Close() error {
	a.client.CloseIdleConnections()
	return nil
}

const zone = "hydra.test"

// startFronts starts the services between clients and members for operations through the wallet.
// Each cloud has a balancer and the wallet on the node of its last member. The DNS server runs
// with the witness, or with the first member if there is none.
//
//	client ─► DNS ─► a cloud's balancer ─► its wallet ─► its balancer ─► member
func (c *cluster) startFronts(ctx context.Context) error {
	if c.options.through != throughWallet {
		return nil
	}
	layout := deploy.Layout{}
	for _, m := range c.All() {
		if m.witness {
			layout.DNS = m.host
			continue
		}
		i := slices.IndexFunc(layout.Clouds, func(o deploy.CloudNodes) bool { return o.Name == m.cloud })
		if i < 0 {
			layout.Clouds, i = append(layout.Clouds, deploy.CloudNodes{Name: m.cloud}), len(layout.Clouds)
		}
		of := &layout.Clouds[i]
		of.Members, of.Edge = append(of.Members, m.host), m.host
	}
	if layout.DNS == nil {
		layout.DNS = layout.Clouds[0].Members[0]
	}
	services, err := deploy.PlanFronts(ctx, layout, deploy.Options{Zone: zone, Insecure: true, Wallet: true})
	if err != nil {
		return fmt.Errorf("planning the way through the wallet: %w", err)
	}
	for _, s := range services {
		if err := c.startFront(ctx, s); err != nil {
			return err
		}
		if s.Kind == deploy.DNSServer {
			c.walletDNS = deploy.HostPort(s.Host, deploy.PortDNS)
		}
	}
	return nil
}

// startFront starts one service and waits until it is ready.
func (c *cluster) startFront(ctx context.Context, s deploy.Service) error {
	at, err := url.Parse(s.URL)
	if err != nil {
		return fmt.Errorf("where %s listens: %w", s.Name, err)
	}
	port, err := strconv.Atoi(at.Port())
	if err != nil {
		return fmt.Errorf("where %s listens: %w", s.Name, err)
	}
	c.ReportProgress("starting %s on %s", s.Name, s.Host.Name())
	d, err := c.Servers.Start(ctx, s.Host, daemon.Spec{
		Command: host.Command{
			Name: s.Name, Path: c.Env.Installation.Programs[program], Env: c.Env.Installation.Env,
			Dir: s.Host.Dir(), Log: filepath.Join(s.Host.Dir(), s.Name+".log"), Args: s.Args,
		},
		Ports: []int{port},
	})
	if err != nil {
		return err
	}
	return d.Await(ctx, readyTimeout, func(ctx context.Context) error { return s.CheckReady(ctx, hydraclient.Config{}) })
}

func (c *cluster) tableNames() []string {
	if c.options.through == throughWallet {
		return []string{wallet.Accounts, wallet.Entries}
	}
	return []string{defaultTable}
}

// countRows counts a member's rows of the table or accounts of the wallet.
func (c *cluster) countRows(ctx context.Context, m *member) (int64, error) {
	if c.options.through == throughWallet {
		sum, _, err := wallet.New(m.admin, time.Now).Sum(ctx)
		return int64(sum.Accounts), err
	}
	return m.admin.Count(ctx, defaultTable)
}

// lookupWallet resolves the wallet's addresses, without a cache.
func lookupWallet(ctx context.Context, names string) ([]string, error) {
	var d net.Dialer
	found, err := deploy.Lookup(ctx, d.DialContext, names, zone)
	if err != nil {
		return nil, err
	}
	all := make([]string, len(found))
	for i, a := range found {
		all[i] = net.JoinHostPort(a.String(), strconv.Itoa(deploy.PortLB))
	}
	return all, nil
}
