package results

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// documents is the template of the page about the documents.
const documents = "documents" + tmplExt

// contradiction is a value computed from a document's own values that contradicts the document.
type contradiction struct {
	sentence string // of documents.md, with %s for the value
	value    func(reader) string
}

// reader returns the values of an item, by series and x.
type reader func(item string) map[string]map[string]float64

// contradictions are all entries of documents.md. By Little's law, the number of requests in flight is throughput times
// latency.
var contradictions = []contradiction{
	{"Amazon's three nodes **%s**", threads("clouds-5-1", "clouds-5-2", "AWS")},
	{"and five nodes **%s**", threads("clouds-5-3", "clouds-5-4", "AWS")},
	{"Amazon's production cluster **%s**", threads("clouds-5-5", "clouds-5-6", "AWS")},
	{"; OpenStack's **%s**", threads("clouds-5-1", "clouds-5-2", "OpenStack")},
	{" and **%s** | Amazon's three and five nodes", threads("clouds-5-3", "clouds-5-4", "OpenStack")},
	{"threads, OpenStack's **%s** |", threads("clouds-5-5", "clouds-5-6", "OpenStack")},
	{"that differ from the published means and deviations ([all of them](clouds.md#clouds-tables-recomputed)): **%s**", wrongEffects},
	{"variances that are not the squares of the deviations: **%s**", wrongVariances},
	{"| Table %s |", wrongDifferences},
	{"**%s** readers in flight", pool("reads")},
	{"**%s** writers", pool("writes")},
	{"the mean time of an operation is **%s** us", func(of reader) string {
		return fmt.Sprintf("%.0f", 1e6/of("faults-raw")["Cassandra 3 nodes ops/s"]["A"])
	}},
	{"a thousand operations in **%s** s", func(of reader) string {
		return fmt.Sprintf("%.3f", 1000/of("faults-raw")["HBase 3 nodes ops/s"]["A"])
	}},
	{"*faster* than three in workloads **%s**", twoBeforeThree},
	{"has by far the slowest reads of the update-heavy load | **%s**", swarm},
	{"proportional to distance gives **%s** from X to 5X", straight("Cassandra")},
	{"Redis' value gives **%s** |", straight("Redis")},
	{"section 4.2.3 implies **%s** from X to 2X", doubled},
}

// documentValues reads the documents' values from data/papers.csv.
func documentValues(t *testing.T) reader {
	return func(item string) map[string]map[string]float64 {
		values, err := folder.Papers(item)
		if err != nil {
			t.Fatal(err)
		}
		by, _, _ := groupValues(values)
		return by
	}
}

// The page about the documents' contradictions has the values that follow from data/papers.csv, and no other figures.
func TestContradictionsFollowFromPapers(t *testing.T) {
	prose := proseOf(templates(t)[documents])
	of := documentValues(t)
	for _, c := range contradictions {
		if want := fmt.Sprintf(c.sentence, c.value(of)); strings.Count(prose, want) != 1 {
			t.Errorf("%s contains %q %d times, want once", documents, want, strings.Count(prose, want))
		}
	}
}

// threads are those of a closed loop, by throughput in operations a second and latency in us.
func threads(throughput, latency, cloud string) func(reader) string {
	return func(of reader) string {
		least, most := math.Inf(1), math.Inf(-1)
		us := of(latency)[cloud]
		for x, perSecond := range of(throughput)[cloud] {
			waiting := perSecond * us[x] / 1e6
			least, most = min(least, waiting), max(most, waiting)
		}
		return fmt.Sprintf("%.0f to %.0f", least, most)
	}
}

// pool is how many clients of a kind the mixed load's first and last row had.
func pool(kind string) func(reader) string {
	return func(of reader) string {
		rate, ms := of("hydra-mixed")[kind], of("hydra-mixed")[kind+" ms"]
		return fmt.Sprintf("%.0f and %.0f", rate["30"]*ms["30"]/1e3, rate["120"]*ms["120"]/1e3)
	}
}

// swarm compares Swarm's service IP with the slowest of the others.
func swarm(of reader) string {
	reads := of("services-p95")["update-heavy reads ms"]
	next, least := 0.0, math.Inf(1)
	for name, v := range reads {
		if name != "SwarmServiceIP" {
			next, least = max(next, v), min(least, v)
		}
	}
	return fmt.Sprintf("%.1f times the next, of six that differ by %.1f ms", reads["SwarmServiceIP"]/next, next-least)
}

func twoBeforeThree(of reader) string {
	raw := of("faults-raw")
	var fewer []string
	for w, two := range raw["Cassandra 2 nodes ops/s"] {
		if two > raw["Cassandra 3 nodes ops/s"][w] {
			fewer = append(fewer, w)
		}
	}
	slices.Sort(fewer)
	return strings.Join(fewer, ", ")
}

// straight returns the factor of throughput from X to 5X if the time of an operation has a constant part and a part
// proportional to distance, and the factor from X to 2X is the published one: (a + 2b) / (a + b) = r gives b / (a + b)
// = r - 1, and (a + 5b) / (a + b) = 1 + 4 (r - 1).
func straight(database string) func(reader) string {
	return func(of reader) string {
		return fmt.Sprintf("%.2f", 1+4*(of("fhc-4.2.1")[database]["X to 2X"]-1))
	}
}

// doubled is the inverse: the factor from X to 2X, from section 4.2.3 on X to 5X.
func doubled(of reader) string {
	falls := of("fhc-4.2.3")
	back := func(series string) float64 { return 1 + (falls[series]["all"]-1)/4 }
	return fmt.Sprintf("%.2f to %.2f", back("Cassandra 5X to X least"), back("Cassandra 5X to X most"))
}

// effectTables are CLOUDS' tables of means and deviations of the processors' use.
var effectTables = []string{"clouds-6-1", "clouds-6-2", "clouds-6-3"}

func wrongEffects(of reader) string {
	var wrong []string
	all := 0
	for _, table := range effectTables {
		by := of(table)
		for _, x := range []string{"A", "B", "C", "D", "E", "F"} {
			all++
			if recomputeEffect(by, x).Wrong() {
				wrong = append(wrong, strings.TrimPrefix(table, "clouds-")+" "+x)
			}
		}
	}
	return fmt.Sprintf("%d of %d: %s", len(wrong), all, strings.Join(wrong, ", "))
}

// wrongVariances returns the variances that differ from the squares of the printed deviations by more than half a per
// cent.
func wrongVariances(of reader) string {
	var wrong []string
	for _, table := range []string{"clouds-6-4", "clouds-6-5", "clouds-6-6"} {
		by := of(table)
		for _, cloud := range []string{"AWS", "OpenStack"} {
			for _, x := range []string{"A", "B", "C", "D", "E", "F"} {
				sd := by[cloud+" SD"][x]
				if math.Abs(sd*sd/by[cloud+" variance"][x]-1) >= 0.005 {
					wrong = append(wrong, fmt.Sprintf("%s %s %s", strings.TrimPrefix(table, "clouds-"), cloud, x))
				}
			}
		}
	}
	return fmt.Sprintf("%d: %s", len(wrong), strings.Join(wrong, ", "))
}

// wrongDifferences are those of table 6-7 that the means of tables 6-1 to 6-3 do not give.
func wrongDifferences(of reader) string {
	var wrong []string
	for _, table := range effectTables {
		by := of(table)
		for _, x := range []string{"A", "B", "C", "D", "E", "F"} {
			if d := by["OpenStack"][x] - by["AWS"][x]; math.Abs(d-by["difference"][x]) > 0.005 {
				wrong = append(wrong, fmt.Sprintf("%s %s is %.2f and not %s", strings.TrimPrefix(table, "clouds-"), x, d,
					formatNumber(by["difference"][x])))
			}
		}
	}
	return strings.Join(wrong, ", ")
}
