package httplimittest_test

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/ratetier/ratetier/core/httplimit"
	"github.com/ratetier/ratetier/core/httplimit/httplimittest"
)

// An adapter that somebody wrote sends the refusal, and forgets to stop there. In a
// test, this is httplimittest.Run(t, subject).
func Example() {
	subject := adapter(func(gate httplimit.Gate[*http.Request]) func(http.Handler) http.Handler {
		return func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				admitted, refusal := gate.Admit(r, r, w.Header())
				if refusal != nil {
					refusal.Write(w, r)
				}
				next.ServeHTTP(w, admitted)
				gate.Done(admitted)
			})
		}
	})
	err := httplimittest.Check(subject)
	first, _, _ := strings.Cut(err.Error(), "\n")
	fmt.Println(first)
	// Output:
	// broken promise: a request that does not fit is answered 429 with the time to wait, and never reaches the handler:
}
