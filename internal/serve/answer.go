package serve

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"

	"skerry/internal/base/advice"
	"skerry/internal/record"
	"skerry/internal/report/compare"
	"skerry/internal/run/live"
)

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the peer went
}

func refuse(w http.ResponseWriter, status int, message, hint string) {
	writeJSON(w, status, live.Refusal{Error: message, Hint: hint})
}

// fail answers with an error of this program.
func fail(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	switch {
	case errors.Is(err, errNoRun), errors.Is(err, record.ErrNoTrial), errors.Is(err, fs.ErrNotExist), errors.Is(err, live.ErrNotLive):
		status = http.StatusNotFound
	case errors.Is(err, record.ErrNotes), errors.Is(err, compare.ErrCells), errors.Is(err, errExperiment):
		status = http.StatusBadRequest
	case errors.Is(err, record.ErrChanged), errors.Is(err, errExists), errors.Is(err, errBusy), errors.Is(err, errNoLaunch):
		status = http.StatusConflict
	case errors.Is(err, record.ErrNotRun), errors.Is(err, record.ErrNewer), errors.Is(err, record.ErrDamaged):
		status = http.StatusUnprocessableEntity
	}
	refuse(w, status, err.Error(), advice.Of(err))
}
