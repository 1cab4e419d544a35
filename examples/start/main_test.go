package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestTheServiceLimitsByPlan(t *testing.T) {
	handler := newHandler()
	for _, step := range []struct {
		key           string
		times, status int
	}{
		{"key_ana", 10, http.StatusOK},
		{"key_ana", 1, http.StatusTooManyRequests},
		{"key_bea", 100, http.StatusOK},
		{"key_zoe", 1, http.StatusUnauthorized},
		{"", 1, http.StatusUnauthorized},
	} {
		for range step.times {
			r := httptest.NewRequest(http.MethodGet, "/data", http.NoBody)
			r.Header.Set("X-Api-Key", step.key)
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			if w.Code != step.status {
				t.Errorf("key %q got %d, want %d", step.key, w.Code, step.status)
			}
		}
	}
}
