package page

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Missing is how steps are measured that were not yet.
type Missing struct {
	// Names are what skerry reproduce takes: a step's, or a page's of which nothing is measured.
	Names []string
	// Takes is the longest that this is likely to take, 0 where that is not known.
	Takes time.Duration
}

// notes fills in what each part that waits tells of its section: the part of the page from the heading above it to the
// next of its level.
func (f *filler) notes(all []part) (err error) {
	for i := range all {
		if all[i].waiting == "" {
			continue
		}
		begin := i
		for begin > 0 && all[begin].kind != heading {
			begin--
		}
		if all[i].text, err = f.note(section(all, begin), all[i].waiting); err != nil {
			return err
		}
		all[i].left = all[i].text == ""
	}
	return nil
}

// note tells what a section lacks, "" for nothing. things are what its parts are called.
func (f *filler) note(section []part, things string) (string, error) {
	asking, absent := 0, 0
	var steps []string
	for _, p := range section {
		if p.asks > 0 {
			asking++
		}
		if p.absent() {
			absent++
		}
		steps = append(steps, p.missing...)
	}
	if len(steps) == 0 {
		return "", nil
	}
	slices.Sort(steps)
	missing, err := f.from.Missing(slices.Compact(steps))
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf("Some figures of the %s are not measured yet.", things)
	switch {
	case absent > 0 && absent == asking:
		text = fmt.Sprintf("None of the %d %s is measured yet.", asking, things)
	case absent > 0:
		text = fmt.Sprintf("Not measured yet, and left out: %d of the %d %s.", absent, asking, things)
	}
	return text + " This measures what is missing, on a machine that does nothing else" + lasting(missing.Takes) + ":\n\n" +
		fence + "\nskerry reproduce " + strings.Join(missing.Names, " ") + "\n" + fence + "\n", nil
}

// lasting tells how long something takes at most.
func lasting(d time.Duration) string {
	switch {
	case d == 0:
		return ""
	case d < 2*time.Hour:
		return fmt.Sprintf(", in %.0f minutes at most", max(1, d.Minutes()))
	}
	return fmt.Sprintf(", in %.0f hours at most", d.Hours())
}

// progress tells how many of a page's steps are measured.
func progress(measured, all int) string {
	switch measured {
	case 0:
		return "nothing yet"
	case all:
		return "all"
	}
	return fmt.Sprintf("%d of %d", measured, all)
}
