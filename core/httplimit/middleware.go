package httplimit

import "net/http"

// Middleware turns a gate into middleware for net/http and for frameworks that use
// its handlers. The ResponseWriter is handed on as it is, so that flushing,
// hijacking and sendfile keep working.
func Middleware(gate Gate[*http.Request]) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			admitted, refusal := gate.Admit(r, r, w.Header())
			if refusal != nil {
				refusal.Write(w, r)
				return
			}
			next.ServeHTTP(w, admitted)
			gate.Done(admitted)
		})
	}
}
