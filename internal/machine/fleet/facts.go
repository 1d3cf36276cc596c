package fleet

import (
	"slices"
	"strings"

	"skerry/internal/machine"
)

// Facts implements machine.Part: of all machines together. Processes belong to one machine, and are reported
// where there is one.
func (p *part) Facts() machine.Facts {
	all := make([]machine.Facts, len(p.parts))
	for i, x := range p.parts {
		all[i] = p.fleet.of(i, x.Facts())
	}
	return merged(all)
}

// of is what a machine tells, with its name.
func (f *Fleet) of(i int, told machine.Facts) machine.Facts {
	name := f.members[i].Name
	told.Warnings = slices.Clone(told.Warnings)
	for k, w := range told.Warnings {
		told.Warnings[k] = name + ": " + w
	}
	told.Nodes = slices.Clone(told.Nodes)
	for k := range told.Nodes {
		told.Nodes[k].Machine = name
	}
	return told
}

func merged(all []machine.Facts) machine.Facts {
	f := all[0]
	f.Settings = mergedSettings(all)
	for _, x := range all[1:] {
		f.Emulator, f.Tunneller, f.Holder = 0, 0, nil
		f.Warnings = append(f.Warnings, x.Warnings...)
		f.Unheld = append(f.Unheld, x.Unheld...)
		f.Nodes = append(f.Nodes, x.Nodes...)
		if len(f.Lab) == 0 {
			f.Lab = x.Lab
		}
	}
	return f
}

// mergedSettings returns the settings of all machines; a value that differs between them comes with their names.
func mergedSettings(all []machine.Facts) map[string]string {
	var merged map[string]string
	for _, x := range all {
		for name := range x.Settings {
			var values, named []string
			for _, y := range all {
				if len(y.Nodes) == 0 {
					continue // which has no settings either
				}
				values = append(values, y.Settings[name])
				named = append(named, y.Settings[name]+" on "+y.Nodes[0].Machine)
			}
			if merged == nil {
				merged = map[string]string{}
			}
			merged[name] = strings.Join(named, ", ")
			if slices.Sort(values); len(slices.Compact(values)) == 1 {
				merged[name] = values[0]
			}
		}
	}
	return merged
}
