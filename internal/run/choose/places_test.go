package choose

import "testing"

// All clients together keep within what a database takes of connections by default, and the driver within what it needs.
func TestConnectionsOfAChoice(t *testing.T) {
	for _, tt := range []struct {
		clients, threads int
		target           float64
		want             int // at each client
	}{
		{2, 32, 200, 64},
		{2, 32, 400, 100},
		{1, 32, 400, 200},
		{1, 32, 5000, 256},
		{1, 100, 400, 400},
	} {
		if got := inFlight(tt.threads/tt.clients, tt.target/float64(tt.clients)); got != tt.want {
			t.Errorf("%d clients, %d threads, %v a second: %d requests under way, want %d", tt.clients, tt.threads, tt.target, got, tt.want)
		}
	}
}
