package external

import "testing"

func TestJoinVersions(t *testing.T) {
	servers := []string{"a:1", "b:1", "c:1"}
	for want, versions := range map[string][]string{
		"8.0.3":                           {"8.0.3", "8.0.3", "8.0.3"},
		"7.0.15 (b:1), 8.0.3 (a:1, c:1)":  {"8.0.3", "7.0.15", "8.0.3"},
		"8.0.3 (a:1), unknown (b:1, c:1)": {"8.0.3", UnknownVersion, UnknownVersion},
		"7 (a:1), 8 (b:1), unknown (c:1)": {"7", "8", UnknownVersion},
	} {
		if got := joinVersions(servers, versions); got != want {
			t.Errorf("%v: %q, want %q", versions, got, want)
		}
	}
}
