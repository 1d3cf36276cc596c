package report

import "html/template"

// Style is the style sheet of reports, for other pages of the same look; it colours the charts
// of package svg.
func Style() template.CSS { return template.CSS(pageCSS) }
