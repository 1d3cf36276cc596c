package runner

import (
	"fmt"
	"regexp"
	"strings"

	"skerry/internal/base/advice"
	"skerry/internal/record"
)

// failure is that of a run of which some trials failed. Those that fail again for the same reason
// are not worth another try.
func (r *run) failure(failed, of int) error {
	err := fmt.Errorf("%d of %d %w", failed, of, ErrTrials)
	if r.alike() {
		return advice.With(err, "all trials fail alike: mend the cause first; logs of the database are below %s/trials", r.writer.Dir())
	}
	return advice.With(err, "try them again with: skerry run --resume %s", r.writer.Dir())
}

// givenUp is the end of a run of which so many trials failed in a row.
func (r *run) givenUp(inARow int, last record.Trial) error {
	err := fmt.Errorf("%d %w in a row, the last one: %s", inARow, ErrTrials, last.Error)
	if r.alike() {
		return advice.With(err, "all trials fail alike: mend the cause first; logs of the database are below %s/trials", r.writer.Dir())
	}
	return advice.With(err, "mend the cause, then go on with: skerry run --resume %s", r.writer.Dir())
}

// alike tells whether no trial measured, and several failed with one message.
func (r *run) alike() bool { return allAlike(r.writer.Summary().Trials) }

func allAlike(trials []record.Trial) bool {
	for _, t := range trials {
		if t.State != record.TrialFailed || cause(t.Error) != cause(trials[0].Error) {
			return false
		}
	}
	return len(trials) > 1
}

// figures are what differs between messages of one cause: times, addresses, processes.
var figures = regexp.MustCompile(`[0-9][0-9.]*(ns|us|µs|ms|s|m|h)?`)

// cause is the first line of an error without its figures.
func cause(message string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(message), "\n")
	return figures.ReplaceAllString(line, "0")
}
