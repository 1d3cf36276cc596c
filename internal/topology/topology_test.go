package topology

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skerry/internal/link"
)

// table3 is Table III of the FHC paper: bandwidth (Mbit/s) above the diagonal, round trip
// (ms) below it.
var table3 = [8][8]int{
	{0, 948, 990, 171, 192, 164, 151, 114},
	{189, 0, 995, 167, 206, 163, 140, 121},
	{181, 142, 0, 173, 255, 157, 138, 117},
	{223, 81, 64, 0, 489, 220, 625, 119},
	{195, 35, 109, 49, 0, 372, 271, 111},
	{207, 172, 156, 93, 153, 0, 174, 127},
	{208, 168, 152, 149, 147, 7, 0, 128},
	{219, 165, 148, 109, 142, 12, 14, 0},
}

func TestAzure8(t *testing.T) {
	got, err := Load("azure8")
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"Melbourne", "Sydney", "Canberra", "Pune", "Singapore", "Seoul", "Dubai", "Virginia"}
	k := 0
	for i := range names {
		if got.Nodes[i] != (Node{Name: names[i], Site: names[i], Role: Data}) {
			t.Errorf("node %d is %+v", i, got.Nodes[i])
		}
		for j := i + 1; j < 8; j++ {
			q := link.Quality{Latency: time.Duration(table3[j][i]) * time.Millisecond / 2, Bandwidth: int64(table3[i][j]) * 1e6}
			want := Link{ID: names[i] + "~" + names[j], A: names[i], B: names[j], AB: q, BA: q}
			if diff := cmp.Diff(want, got.Links[k]); diff != "" {
				t.Errorf("link %d: -want +got:\n%s", k, diff)
			}
			k++
		}
	}
	if len(got.Links) != k {
		t.Errorf("%d links, want %d", len(got.Links), k)
	}
}

func TestPresets(t *testing.T) {
	tests := []struct {
		name         string
		nodes, links int
		rtt          time.Duration // of the first link
		bandwidth    int64
	}{
		{"pair", 2, 1, 20 * time.Millisecond, 0},
		{"triangle,rtt=40ms,bandwidth=100mbit", 3, 3, 40 * time.Millisecond, 1e8},
		{"ring:2", 2, 1, 20 * time.Millisecond, 0},
		{"ring:256", 256, 256, 20 * time.Millisecond, 0},
		{"mesh:8,latency=5ms", 8, 28, 10 * time.Millisecond, 0},
		{"azure8-geo", 8, 28, 0, 948e6},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Load(tt.name)
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Nodes) != tt.nodes || len(got.Links) != tt.links {
				t.Errorf("%d nodes and %d links, want %d and %d", len(got.Nodes), len(got.Links), tt.nodes, tt.links)
			}
			l := got.Links[0]
			if tt.rtt > 0 && l.AB.Latency+l.BA.Latency != tt.rtt || l.AB.Bandwidth != tt.bandwidth {
				t.Errorf("first link is %+v", l)
			}
		})
	}
}

func TestDistance(t *testing.T) {
	singapore, virginia := point{1.35, 103.82}, point{36.67, -78.39}
	tests := []struct {
		name string
		a, b point
		km   float64 // great circle
	}{
		{"a degree of the equator", point{0, 0}, point{0, 1}, 111.195},
		{"pole to pole", point{90, 0}, point{-90, 0}, math.Pi * 6371.0088},
		{"over the date line", point{0, 179.5}, point{0, -179.5}, 111.195},
		{"London to New York", point{51.5074, -0.1278}, point{40.7128, -74.0060}, 5570},
		{"nowhere", singapore, singapore, 0},
	}
	for _, tt := range tests {
		if got := greatCircleKm(tt.a, tt.b); math.Abs(got-tt.km) > 0.001*tt.km+1e-9 {
			t.Errorf("%s: %.3f km, want %.3f", tt.name, got, tt.km)
		}
	}
	// 204,190 km/s: 2041.9 km of fibre are 10 ms.
	if got := propagationDelay(2041.9, 1); (got - 10*time.Millisecond).Abs() > 10*time.Microsecond {
		t.Errorf("2041.9 km take %v, want 10ms", got)
	}
	if got := propagationDelay(1000, 1.5); (got - 7346*time.Microsecond).Abs() > time.Microsecond {
		t.Errorf("1000 km with a detour of 1.5 take %v, want 7.346ms", got)
	}
	half := interpolate(singapore, virginia, 0.5)
	if a, b := greatCircleKm(singapore, half), greatCircleKm(half, virginia); math.Abs(a-b) > 1e-6 {
		t.Errorf("the middle is %f km from one end and %f km from the other", a, b)
	}
}
