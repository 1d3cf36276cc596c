package metadata

import (
	"errors"
	"slices"
	"testing"

	"skerry/internal/database"
)

func TestBalancing(t *testing.T) {
	for _, test := range []struct {
		options database.Options
		want    []string
	}{
		{database.Options{"servers": "node"}, nil},
		{database.Options{"servers": "site", "balance": true}, []string{"--balance"}},
		{
			database.Options{"servers": "node", "balance": true, "balance_interval": "2s", "balance_rest": "6s", "balance_stay": "30s", "balance_floor": 200},
			[]string{"--balance", "--balance-interval", "2s", "--balance-rest", "6s", "--balance-stay", "30s", "--balance-floor", "200"},
		},
	} {
		o, err := parseOptions(test.options)
		if got := o.balancerArguments(); err != nil || !slices.Equal(got, test.want) {
			t.Errorf("%v: %q, %v; want %q", test.options, got, err, test.want)
		}
	}
	if _, err := parseOptions(database.Options{"balance": true}); !errors.Is(err, ErrOption) {
		t.Errorf("one server is balanced: %v", err)
	}
}
