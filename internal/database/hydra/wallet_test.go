package hydra

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"skerry/internal/load"
	"skerry/systems/hydra/api"
	"skerry/systems/hydra/hydraclient"
	"skerry/systems/hydra/wallet"
)

// full is a data layer that has every account, so that no check for an absent account holds.
type full struct{ wallet.Data }

func (full) Transact(context.Context, api.Transaction, ...hydraclient.Option) (api.Written, error) {
	return api.Written{}, &hydraclient.Error{Problem: api.Problem{Code: api.CodeCheckFailed, Failed: new(int)}}
}

// The load retries an account whose first request succeeded without a response.
func TestExistingAccountIsInserted(t *testing.T) {
	server := httptest.NewServer(wallet.NewServer(wallet.New(full{}, time.Now), "aws", slog.New(slog.DiscardHandler)))
	defer server.Close()
	at := server.Listener.Addr().String()
	a := &application{server: at, client: &http.Client{Timeout: time.Minute, Transport: &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, at)
		},
	}}}
	defer a.Close()
	if err := a.Insert(t.Context(), "", "user1", nil); err != nil {
		t.Errorf("inserting an existing account: %v", err)
	}
	if err := a.Update(t.Context(), "", "user1", []load.Field{}); err == nil {
		t.Error("a deposit into a missing account succeeded")
	}
}
