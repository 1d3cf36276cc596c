package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const twoClouds = `
name: clouds
sites: [{name: aws, nodes: 3}, {name: gcp, nodes: 3}, {name: third, nodes: 2}]
connect: full
defaults: {rtt: 4ms, site_rtt: 0.2ms}
`

// deployment is what `hydra up --json` prints.
type deployment struct {
	Zone, DNS, Door, Keys string
	Services              []struct {
		Name, Kind, Cloud, URL string
		PID                    int
	}
}

// wallet is the wallet as seen by a browser on this machine.
type wallet struct {
	t    *testing.T
	door string
}

// order retries an order with its key until it is confirmed.
func (w wallet) order(path, key, body string) {
	w.t.Helper()
	var last string
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		req, err := http.NewRequest(http.MethodPost, w.door+"/api/"+path, strings.NewReader(body))
		if err != nil {
			w.t.Fatal(err)
		}
		req.Close = true // each queries the DNS server again
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", key)
		var status int
		if status, last = w.do(req); status == http.StatusOK {
			return
		}
	}
	w.t.Fatalf("%s %s was never done: %s", path, body, last)
}

func (w wallet) do(req *http.Request) (status int, body string) {
	client := http.Client{Timeout: 15 * time.Second}
	resp, err := client.Do(req)
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

// A deployment on a lab: the wallet is used through the DNS server and the balancers while a cloud is disconnected,
// returns, and is killed. No order is lost or repeated, and nothing of the lab remains.
func TestHydraOnALab(t *testing.T) {
	b := newBench(t)
	up := b.program("hydra", "up", b.write("clouds.yaml", twoClouds), "--json", "--prefer", "aws", "--secure", "--restart", "1s").start()
	var d deployment
	b.await("the deployment", func() bool {
		select {
		case <-up.done:
			t.Fatalf("the deployment exited\n%s", up.stderr.String())
		default:
		}
		return json.Unmarshal([]byte(up.stdout.String()), &d) == nil
	})
	w := wallet{t, d.Door}
	w.order("accounts", "a1", `{"name":"ada"}`)
	w.order("accounts", "a2", `{"name":"bob"}`)
	w.order("deposits", "d1", `{"to":"ada","amount_cents":1000}`)

	b.run(0, "lab", "set", "-l", "clouds", "aws-*", "down=true")
	w.order("transfers", "t1", `{"from":"ada","to":"bob","amount_cents":100}`)
	b.run(0, "lab", "set", "-l", "clouds", "aws-*", "down=false")
	w.order("transfers", "t1", `{"from":"ada","to":"bob","amount_cents":100}`) // the same order
	for _, s := range d.Services {
		if s.Cloud == "gcp" {
			if err := syscall.Kill(s.PID, syscall.SIGKILL); err != nil {
				t.Error(err)
			}
		}
	}
	w.order("transfers", "t2", `{"from":"ada","to":"bob","amount_cents":10}`)

	// From within the lab, by name; the response may still contain the edge of the killed cloud.
	const want = `"name":"ada","balance_cents":890`
	b.await("the balance in the lab", func() bool {
		r := b.command("lab", "exec", "-l", "clouds", "third-2", "--", "curl", "-s", "-m", "10", "http://"+d.Zone+":8080/api/accounts").start()
		return r.wait() == 0 && strings.Contains(r.stdout.String(), want)
	})
	status := b.run(0, "lab", "exec", "-l", "clouds", "aws-1", "--", filepath.Join(filepath.Dir(b.exe), "hydra"), "status", strings.TrimPrefix(d.Services[0].URL, "https://"),
		"--ca", d.Keys+"/ca.crt", "--cert", d.Keys+"/application.crt", "--key", d.Keys+"/application.key", "--token-file", d.Keys+"/token-read")
	if !strings.Contains(status.stdout.String(), "serving") {
		t.Errorf("status:\n%s", status.stdout.String())
	}
	up.signal(syscall.SIGINT)
	if code := up.wait(); code != 0 {
		t.Errorf("exit code %d\n%s", code, up.stderr.String())
	}
}
