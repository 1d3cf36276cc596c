package doctor

import (
	"context"

	"skerry/internal/install"
)

// apt tells whether databases can be fetched.
func apt(ctx context.Context, recipes []install.Recipe) Finding {
	const name = "apt"
	for _, r := range recipes {
		if err := install.Fetchable(ctx, r); err != nil {
			return failed(name, Limited, err)
		}
	}
	return Finding{Name: name, State: OK, Detail: "databases can be fetched"}
}

// databases are those that can be installed.
func databases(ctx context.Context, s install.Store, recipes []install.Recipe) []Finding {
	var found []Finding
	for _, d := range s.List(ctx, recipes) {
		f := Finding{Name: d.Name, State: OK, Detail: d.Version + " (" + d.Source + ", " + d.Path + ")"}
		if d.Version == "" {
			f = Finding{Name: d.Name, State: Missing, Detail: "not installed", Mend: d.Advice}
			if d.Problem != "" {
				f.Detail = d.Problem
			}
		}
		found = append(found, f)
	}
	return found
}
