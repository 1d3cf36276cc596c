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
	"strconv"
	"time"

	"skerry/internal/database"
	"skerry/internal/load"
	"skerry/systems/hydra/api"
	"skerry/systems/hydra/deploy"
)

// application is one worker's client of the wallet: the document's way, in which a record is an account.
//
//	insert  POST /api/accounts   an account is opened, with nothing in it
//	update  POST /api/deposits   a cent is paid in: a transaction over account, bank and history
//	read    GET /api/accounts/…  its balance
//
// Each worker has one connection, made to the first address of the DNS server's answer that can be reached,
// and made anew, with a new answer, when it has ended.
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

// send sends a request, with a body where there is one.
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

// Read implements load.Client.
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

// Insert implements load.Client. An account that is there already is what an insert asks for: the load asks
// again, as another request, for a record whose first request was done and got no answer.
func (a *application) Insert(ctx context.Context, _, key string, _ []load.Field) error {
	_, err := a.send(ctx, http.MethodPost, "/api/accounts", map[string]any{"name": key})
	if op := new(load.OpError); errors.As(err, &op) && op.Class == conflictClass {
		return nil
	}
	return err
}

// conflictClass is the class of the wallet's answer that an account is there already.
var conflictClass = "http_" + strconv.Itoa(http.StatusConflict)

// Update implements load.Client.
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

// Close implements load.Client.
func (a *application) Close() error {
	a.client.CloseIdleConnections()
	return nil
}
