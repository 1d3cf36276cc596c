package results

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// values are a table of a document: by series, then by what they are at.
func values(t *testing.T, item string) map[string]map[string]float64 {
	t.Helper()
	all, err := Folder(pages).Papers(item)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string]float64{}
	for _, v := range all {
		if out[v.Series] == nil {
			out[v.Series] = map[string]float64{}
		}
		out[v.Series][v.X] = v.Y
	}
	return out
}

// span is "LEAST to MOST" of a figure over what two series have in common.
func span(a, b map[string]float64, format string, figure func(a, b float64) float64) string {
	least, most := math.Inf(1), math.Inf(-1)
	for x := range a {
		if y, ok := b[x]; ok {
			v := figure(a[x], y)
			least, most = min(least, v), max(most, v)
		}
	}
	return fmt.Sprintf(format+" to "+format, least, most)
}

// waiting is how many requests are under way, by Little's law: a second's times seconds each.
func waiting(perSecond float64, seconds float64) float64 { return perSecond * seconds }

// What docs/results/documents.md finds wrong in the documents follows from the documents' own values.
func TestFaultsOfTheDocuments(t *testing.T) {
	clouds := func(throughput, latency, cloud string) string {
		return span(values(t, throughput)[cloud], values(t, latency)[cloud], "%.0f", func(a, b float64) float64 { return waiting(a, b/1e6) })
	}
	mixed, raw, fhc := values(t, "hydra-mixed"), values(t, "faults-raw"), values(t, "fhc-4.2.3")
	ms := func(a, b float64) float64 { return waiting(a, b/1e3) }
	var fewer []string
	for _, w := range []string{"A", "B", "C", "D"} {
		if raw["Cassandra 2 nodes ops/s"][w] > raw["Cassandra 3 nodes ops/s"][w] {
			fewer = append(fewer, w)
		}
	}
	services := values(t, "services-p95")
	facts := map[string]string{
		"threads of Amazon's 3 nodes":              clouds("clouds-5-1", "clouds-5-2", "AWS"),
		"of Amazon's 5 nodes":                      clouds("clouds-5-3", "clouds-5-4", "AWS"),
		"of Amazon's production":                   clouds("clouds-5-5", "clouds-5-6", "AWS"),
		"of OpenStack's 3 nodes":                   clouds("clouds-5-1", "clouds-5-2", "OpenStack"),
		"of OpenStack's 5 nodes":                   clouds("clouds-5-3", "clouds-5-4", "OpenStack"),
		"of OpenStack's production":                clouds("clouds-5-5", "clouds-5-6", "OpenStack"),
		"readers of the mixed load":                fmt.Sprintf("%.0f, %.0f", ms(mixed["reads"]["30"], mixed["reads ms"]["30"]), ms(mixed["reads"]["120"], mixed["reads ms"]["120"])),
		"writers of the mixed load":                fmt.Sprintf("%.0f, %.0f", ms(mixed["writes"]["30"], mixed["writes ms"]["30"]), ms(mixed["writes"]["120"], mixed["writes ms"]["120"])),
		"time of an operation of Cassandra, A, us": fmt.Sprintf("%.0f", 1e6/raw["Cassandra 3 nodes ops/s"]["A"]),
		"seconds of HBase's A for 1,000":           fmt.Sprintf("%.3f", 1000/raw["HBase 3 nodes ops/s"]["A"]),
		"two nodes of Cassandra before three":      strings.Join(fewer, ", "),
		"Cassandra from 5X to X":                   fmt.Sprintf("%.2f to %.0f times", fhc["Cassandra 5X to X, least"]["all"], fhc["Cassandra 5X to X, most"]["all"]),
		"swarm's service IP beside the others":     fmt.Sprintf("%.1f times", services["update-heavy reads ms"]["SwarmServiceIP"]/services["update-heavy reads ms"]["K8ContainerDNSName"]),
	}
	page, err := os.ReadFile(filepath.Join(pages, "documents.md"))
	if err != nil {
		t.Fatal(err)
	}
	for what, value := range facts {
		if !slices.Contains(strings.Split(string(page), "**"), value) {
			t.Errorf("documents.md does not say **%s** (%s)", value, what)
		}
	}
}
