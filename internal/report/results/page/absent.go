package page

import "strings"

// leaveOut finds what of a page is not worth reading yet: parts without any of the figures that they ask for; then
// heads of tables and lead-ins to which nothing is left, and sections.
func leaveOut(all []part) {
	for i := range all {
		all[i].left = all[i].absent()
	}
	for i := range all {
		if all[i].kind == tableHead && gone(run(all[i+1:], func(p part) bool { return p.kind == row })) {
			all[i].left = true
		}
	}
	for i, p := range all {
		if leadsIn(p) && gone(run(all[i+1:], shown)) {
			all[i].left = true
		}
	}
	for i, p := range all {
		if p.kind == heading && p.level > 1 && silent(section(all, i)) {
			for j := range section(all, i) {
				all[i+j].left = true
			}
		}
	}
}

// run is how far parts go on as they should.
func run(parts []part, goesOn func(part) bool) []part {
	for i, p := range parts {
		if !goesOn(p) {
			return parts[:i]
		}
	}
	return parts
}

// gone tells whether there were parts, and all of them are left out.
func gone(parts []part) bool {
	there := false
	for _, p := range parts {
		if p.kind == blank {
			continue
		}
		if !p.left {
			return false
		}
		there = true
	}
	return there
}

// leadsIn tells whether a part is there for what follows it.
func leadsIn(p part) bool {
	return p.kind == paragraph && p.has == 0 && strings.HasSuffix(strings.TrimSpace(p.text), ":")
}

// shown are the parts that a lead-in leads to.
func shown(p part) bool {
	return p.kind == blank || p.kind == ownLines && p.waiting == "" || p.kind == item || p.kind == tableHead || p.kind == row
}

// section is a heading with all below it.
func section(all []part, at int) []part {
	for i := at + 1; i < len(all); i++ {
		if all[i].kind == heading && all[i].level <= all[at].level {
			return all[at:i]
		}
	}
	return all[at:]
}

// silent tells whether a section asks for figures, has none, and does not say so itself.
func silent(parts []part) bool {
	asks := 0
	for _, p := range parts {
		if p.has > 0 || p.waiting != "" {
			return false
		}
		asks += p.asks
	}
	return asks > 0
}
