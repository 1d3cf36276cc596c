package galera

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/database"
	"skerry/test/testkit/testhost"
)

func TestOptions(t *testing.T) {
	for _, test := range []struct {
		given database.Options
		want  string // among the provider's options
		err   string
	}{
		{given: database.Options{"evs_suspect_timeout": "2s"}, want: "evs.keepalive_period=PT0.5S;evs.suspect_timeout=PT2S"},
		{given: database.Options{"evs_suspect_timeout": "10s"}, want: "evs.suspect_timeout=PT10S"},
		{given: database.Options{"gcs_fc_limit": 256, "gcs_fc_single_primary": true}, want: "gcs.fc_limit=256;gcs.fc_single_primary=yes"},
		{given: database.Options{"wsrep_provider_options": "pc.weight=2; evs.version=1"}, want: "pc.weight=2;evs.version=1"},
		{given: database.Options{"gcs_fc_factor": 0.5}, want: "gcs.fc_factor=0.5"},
		{given: database.Options{"evs_suspect_timeot": "2s"}, err: "did you mean evs_suspect_timeout?"},
		{given: database.Options{"evs_suspect_timeout": "20s"}, err: "at most evs_inactive_timeout"},
		{given: database.Options{"evs_suspect_timeout": "3s", "evs_inactive_timeout": "2s"}, err: "at most evs_inactive_timeout"},
		{given: database.Options{"evs_suspect_timeout": "100ms"}, err: "500ms or more"},
		{given: database.Options{"wsrep_sync_wait": 16}, err: "from 0 to 15"},
		{given: database.Options{"wsrep_provider_options": "weight"}, err: "a list of name=value"},
		{given: database.Options{"innodb_buffer_pool_size": "1MiB"}, err: "5MiB or more"},
		{given: database.Options{"gcs_fc_factor": 2}, err: "a number above 0"},
		{given: database.Options{"port": 4567}, err: "Galera itself"},
		{given: database.Options{"member": "best"}, err: "one of nearest, first, round_robin"},
	} {
		o, err := parseOptions(3, test.given)
		if test.err != "" {
			if !errors.Is(err, ErrOption) || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%v: error %v, want %q", test.given, err, test.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%v: %v", test.given, err)
		}
		if got := strings.Join(o.provider, ";"); got != test.want {
			t.Errorf("%v: provider options %q, want %q", test.given, got, test.want)
		}
	}
}

func TestSettings(t *testing.T) {
	o, err := parseOptions(2, database.Options{"segments": true, "gcs_fc_limit": 64, "wsrep_sst_method": "mariabackup", "wsrep_sync_wait": 1})
	if err != nil {
		t.Fatal(err)
	}
	h := testhost.Loopback(t, 1)[0]
	text := o.settings(h, parts{base: "/b", provider: "/p.so"}, []string{"10.0.0.1", "10.0.0.2"}, 3).Text("mysqld")
	for _, want := range []string{
		"[mysqld]\n", "wsrep-cluster-address = gcomm://10.0.0.1,10.0.0.2\n", "wsrep-sst-method = mariabackup\n", "wsrep-sst-auth = skerry:\n",
		"wsrep-sync-wait = 1\n", "innodb-flush-log-at-trx-commit = 2\n",
		`wsrep-provider-options = "gmcast.listen_addr=tcp://` + h.Addr() + ":4567;ist.recv_addr=" + h.Addr() +
			`:4568;gcache.size=33554432;gmcast.segment=3;gcs.fc_limit=64"` + "\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}

func TestPosition(t *testing.T) {
	for _, p := range []position{{history: history, seqno: 12, safe: true}, {history: history, seqno: -1}} {
		got, err := parsePosition(p.text())
		if err != nil || got != p {
			t.Errorf("%+v read back as %+v, %v", p, got, err)
		}
	}
	for _, bad := range []string{"", "uuid: x\nseqno: many\n", "seqno: 1\n"} {
		if p, err := parsePosition(bad); err == nil {
			t.Errorf("%q was parsed as %+v", bad, p)
		}
	}
	got, err := parseRecovered("2026-11-22  0:33:20 0 [Note] WSREP: Recovered position: " + history + ":412\n")
	if err != nil || got != (position{history: history, seqno: 412}) {
		t.Errorf("recovered %+v, %v", got, err)
	}
	if p, err := parseRecovered("[ERROR] Aborting"); err == nil {
		t.Errorf("recovered %+v from an empty log", p)
	}
}

func FuzzPosition(f *testing.F) {
	f.Add(position{history: history, seqno: 1}.text())
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parsePosition(text)
		if err != nil {
			return
		}
		if again, err := parsePosition(p.text()); err != nil || again != p {
			t.Errorf("%+v read back as %+v, %v", p, again, err)
		}
	})
}

func TestStatus(t *testing.T) {
	well := map[string]string{"wsrep_local_state_comment": "Synced", "wsrep_cluster_status": "Primary", "wsrep_ready": "ON",
		"wsrep_cluster_size": "3", "wsrep_cluster_state_uuid": history, "wsrep_last_committed": "7"}
	for _, test := range []struct {
		name, value, want string
	}{
		{"", "", ""},
		{"wsrep_cluster_status", "non-Primary", "its part of the cluster is non-Primary"},
		{"wsrep_local_state_comment", "Donor/Desynced", "it is Donor/Desynced (ready: true)"},
		{"wsrep_ready", "OFF", "it is Synced (ready: false)"},
		{"wsrep_cluster_size", "2", "it sees 2 members, not 3"},
	} {
		v := map[string]string{test.name: test.value}
		for k, s := range well {
			if k != test.name {
				v[k] = s
			}
		}
		st, err := parseStatus(v)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := st.serves(3); err != nil {
			got = err.Error()
		}
		if d := cmp.Diff(test.want, got); d != "" {
			t.Error(d)
		}
	}
	for _, v := range []map[string]string{{}, {"wsrep_local_state_comment": "Synced", "wsrep_cluster_size": ""},
		{"wsrep_local_state_comment": "Synced", "wsrep_cluster_size": "3"}} {
		if st, err := parseStatus(v); err == nil {
			t.Errorf("%v read as %+v", v, st)
		}
	}
}
