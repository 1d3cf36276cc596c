package chaos

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	"skerry/systems/hydra/deploy"
)

// pageEvery is the interval between two requests of pages.
const pageEvery = 50 * time.Millisecond

// page is a request as a browser sends it for a page of another site.
type page struct {
	method, path, host string
	header             http.Header
}

var pages = []page{
	{http.MethodPut, "/v1/tables/evil", "", http.Header{"Origin": {"http://evil.example"}}},
	{http.MethodPut, "/v1/tables/evil", "", http.Header{"Sec-Fetch-Site": {"cross-site"}}},
	{http.MethodPost, "/v1/transactions", "", http.Header{"Origin": {"null"}, "Content-Type": {"text/plain"}}},
	{http.MethodDelete, "/v1/tables/t", "", http.Header{"Sec-Fetch-Site": {"same-site"}}},
	{http.MethodPost, "/v1/members", "", http.Header{"Origin": {"http://evil.example"}, "Sec-Fetch-Site": {"cross-site"}}},
	{http.MethodGet, "/v1/tables/t/rows", "evil.example", nil},
	{http.MethodPut, "/v1/tables/evil", "evil.example:7070", nil},
	{http.MethodPost, "/api/transfers", "", http.Header{"Origin": {"http://evil.example"}, "Content-Type": {"application/json"}, "Idempotency-Key": {"evil"}}},
	{http.MethodGet, "/api/sum", "evil.example", nil},
}

// bodies are the requests of pages, which would have an effect if they were accepted.
var bodies = map[string]string{
	"/v1/transactions": `{"writes":[{"do":"drop_table","table":"t"},{"do":"create_table","table":"evil"}]}`,
	"/v1/members":      `{"name":"evil","cloud":"evil","peer":"192.0.2.1:7071","api":"192.0.2.1:7070"}`,
	"/api/transfers":   `{"from":"account-0","to":"account-1","amount_cents":1}`,
}

// browse sends requests of other sites to every service, and reports accepted ones.
func (k *work) browse(ctx context.Context) {
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DialContext: k.w.layout.DNS.Dial, DisableKeepAlives: true}}
	var services []deploy.State
	for _, s := range k.w.deployed.States() {
		if strings.HasPrefix(s.URL, "http") {
			services = append(services, s)
		}
	}
	for n := 0; ctx.Err() == nil; n++ {
		s, p := services[n%len(services)], pages[n/len(services)%len(pages)]
		if strings.HasPrefix(p.path, "/v1") && s.Kind == deploy.Wallet {
			continue // the service has no such path
		}
		k.call(client, s, p)
		time.Sleep(pageEvery)
	}
}

func (k *work) call(client *http.Client, s deploy.State, p page) {
	req, err := http.NewRequest(p.method, s.URL+p.path, strings.NewReader(bodies[p.path]))
	if err != nil {
		k.w.t.Error(err)
		return
	}
	req.Header, req.Host = p.header.Clone(), p.host
	resp, err := client.Do(req)
	if err != nil {
		return // the service is unreachable
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	if resp.StatusCode != http.StatusForbidden && resp.StatusCode != http.StatusMisdirectedRequest {
		k.w.t.Errorf("response to a page's %s %s to %s (%v, host %q): %s: %s", p.method, p.path, s.Name, p.header, p.host, resp.Status, text)
		return
	}
	k.refused.Add(1)
}
