// Package httplimit is the half of HTTP that every adapter shares: who is asking,
// what it costs, the headers, the refusals, and the order in which they come. Users
// meet it as the Config of their adapter; authors of adapters build on it.
//
// An adapter for a framework with context type C is one function that turns a
// [Gate] into the framework's kind of middleware, and says five things: what C is,
// how to get the request and the response's header from it, how to name the route,
// how to go on, and how to stop. Both of its gates go through that function:
// [NewGuard] is the limiter, [NewCost] the cost declared on a route. For C =
// *http.Request it is [Middleware], which the adapters for net/http and chi share.
//
// Package httplimittest checks an adapter over a real socket.
package httplimit
