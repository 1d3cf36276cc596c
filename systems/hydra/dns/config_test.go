package dns

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"skerry/internal/base/unit"
)

func TestParse(t *testing.T) {
	good := `
zone: hydra.test
ttl: 2s
nameservers: [{name: ns1, addresses: [192.0.2.53]}]
names:
  - {name: "@", alias: wallet}
  - name: wallet
    targets: [{address: 192.0.2.1, check: "http://192.0.2.1/-/ready"}]
`
	c, err := Parse("zone.yaml", []byte(good))
	if err != nil {
		t.Fatal(err)
	}
	want := Defaults("hydra.test")
	want.TTL = unit.Duration(2 * time.Second)
	want.Nameservers = []Nameserver{{Name: "ns1", Addresses: []string{"192.0.2.53"}}}
	want.Names = []Name{{Name: "@", Alias: "wallet"}, {Name: "wallet",
		Targets: []Target{{Address: "192.0.2.1", Check: "http://192.0.2.1/-/ready"}}}}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for name, text := range map[string]string{
		"a circle":            "zone: z\nnames: [{name: a, alias: b}, {name: b, alias: a}]",
		"an alias of nothing": "zone: z\nnames: [{name: a, alias: b}]",
		"an outside alias":    "zone: z\nnames: [{name: a, alias: b.org.}]",
		"both":                "zone: z\nnames: [{name: a, alias: a, targets: [{address: 1.2.3.4}]}]",
		"neither":             "zone: z\nnames: [{name: a}]",
		"no address":          "zone: z\nnames: [{name: a, targets: [{address: localhost}]}]",
		"no such check":       "zone: z\nnames: [{name: a, targets: [{address: 1.2.3.4, check: 'ftp://x/'}]}]",
		"no port":             "zone: z\nnames: [{name: a, targets: [{address: 1.2.3.4, check: 'tcp://x'}]}]",
		"twice":               "zone: z\nnames: [{name: a, targets: [{address: 1.2.3.4}]}, {name: A, targets: [{address: 1.2.3.4}]}]",
		"outside":             "zone: z\nnames: [{name: a.org., targets: [{address: 1.2.3.4}]}]",
		"half a second":       "zone: z\nttl: 500ms",
		"the root":            "zone: .",
		"a server at @":       "zone: z\nnameservers: [{name: '@', addresses: [1.2.3.4]}]",
	} {
		if _, err := Parse("zone.yaml", []byte(text)); !errors.Is(err, ErrZone) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Parse("zone.yaml", []byte("zone: z\nnmaes: []")); err == nil {
		t.Error("a misspelt key was accepted")
	}
}

func FuzzParse(f *testing.F) {
	f.Add("zone: z\nnames: [{name: a, targets: [{address: 1.2.3.4}]}]", "a.z.")
	f.Add("zone: z\nnames: [{name: '@', alias: b}, {name: b, targets: [{address: '::1'}]}]", "z.")
	f.Fuzz(func(t *testing.T, text, name string) {
		c, err := Parse("zone.yaml", []byte(text))
		if err != nil {
			return
		}
		z := newZone(c) // a valid configuration can be served
		s := &Server{zone: z}
		if m := s.reply(new(dns.Msg).SetQuestion(dns.Fqdn(name), dns.TypeA)); m == nil {
			t.Error("no reply")
		}
	})
}
