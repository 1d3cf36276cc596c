package results

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"skerry/internal/report/results/page"
)

// measured tells whether there are data of a step.
func (f Folder) measured(s Step) (bool, error) {
	_, err := os.Stat(f.data(s.Name + dataExt))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("looking for what is kept of %s: %w", s.Name, err)
	}
	return true, nil
}

// Progress implements page.Source.
func (f Folder) Progress(name string) (measured, all int, err error) {
	plan, err := f.plan()
	if err != nil {
		return 0, 0, err
	}
	i := slices.IndexFunc(plan.Pages, func(p Page) bool { return p.Name == name })
	if i < 0 {
		return 0, 0, fmt.Errorf("the plan has no page %s", name)
	}
	for _, s := range plan.Pages[i].Steps {
		there, err := f.measured(s)
		if err != nil {
			return 0, 0, err
		}
		if there {
			measured++
		}
	}
	return measured, len(plan.Pages[i].Steps), nil
}

// Missing implements page.Source. A page of which most is missing stands for its steps.
func (f Folder) Missing(steps []string) (out page.Missing, err error) {
	plan, err := f.plan()
	if err != nil {
		return out, err
	}
	known := true
	for _, p := range plan.Pages {
		asked := slices.DeleteFunc(slices.Clone(p.Steps), func(s Step) bool { return !slices.Contains(steps, s.Name) })
		if len(asked) == 0 {
			continue
		}
		measured, all, err := f.Progress(p.Name)
		if err != nil {
			return out, err
		}
		whole := 2*measured < all
		if whole {
			asked = p.Steps
			out.Names = append(out.Names, p.Name)
		}
		for _, s := range asked {
			if !whole {
				out.Names = append(out.Names, s.Name)
			}
			e, err := f.estimate(s)
			if err != nil {
				return out, err
			}
			known = known && e.known
			out.Takes += e.takes
		}
	}
	if !known {
		out.Takes = 0
	}
	return out, nil
}
