// Package bench compares ratetier with its peers, which are dependencies of this
// module and of no other. Each benchmark checks that a check was made: the limits are so
// high that every request is allowed, and an answer carries its headers.
//
//	make bench
package bench
