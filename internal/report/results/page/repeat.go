package page

import (
	"regexp"
	"strings"
)

// What several steps have alike stands once in a template, with the words that differ:
//
//	<!-- repeat STEP | NAME
//	fhc-latency-redis | Redis
//	fhc-latency-valkey | Valkey
//	-->
//	| NAME | <!-- trials STEP --> |
//	<!-- end repeat -->
var repeats = regexp.MustCompile(`(?s)<!-- repeat ([^\n]*)\n(.*?)\n-->\n(.*?)<!-- end repeat -->\n`)

// repeated writes out what a template repeats. One that is not as it should be is left, as a comment that is no marker.
func repeated(template string) string {
	return repeats.ReplaceAllStringFunc(template, func(found string) string {
		m := repeats.FindStringSubmatch(found)
		names := strings.Split(m[1], " | ")
		var b strings.Builder
		for line := range strings.SplitSeq(m[2], "\n") {
			words := strings.Split(line, " | ")
			if len(words) != len(names) {
				return found
			}
			pairs := make([]string, 0, 2*len(names))
			for i, name := range names {
				pairs = append(pairs, name, words[i])
			}
			b.WriteString(strings.NewReplacer(pairs...).Replace(m[3]))
		}
		return b.String()
	})
}
