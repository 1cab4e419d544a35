package metrics

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode"
)

// Stats returns a metric for each exported field of what the function returns, which is
// what a store tells of itself, and a function that reads their values in that order.
//
// The type of a field decides what it is: an unsigned integer is a counter, a
// [time.Duration] a counter of seconds, a signed integer a gauge, and a bool a gauge of 0
// or 1. Its name follows "ratetier.store." in lower case: Evictions is
// "ratetier.store.evictions". The one label is the store.
//
// It is an error if the fields are not all of these types, or if there are none.
func Stats[S any](stats func() S) (metrics []Metric, read func() []float64, err error) {
	if stats == nil {
		return nil, nil, errors.New("no function that returns statistics: use for example store.Stats")
	}
	t := reflect.TypeFor[S]()
	if t.Kind() != reflect.Struct {
		return nil, nil, fmt.Errorf("statistics of type %v: must be a struct with a field for each number", t)
	}
	var fields []reflect.StructField
	var errs []error
	for i := range t.NumField() {
		field := t.Field(i)
		if !field.IsExported() {
			continue
		}
		metric, err := statOf(field)
		if err != nil {
			errs = append(errs, fmt.Errorf("%v: %w", t, err))
		}
		metrics, fields = append(metrics, metric), append(fields, field)
	}
	if len(fields) == 0 {
		errs = append(errs, fmt.Errorf("%v has no exported fields", t))
	}
	read = func() []float64 {
		s, values := reflect.ValueOf(stats()), make([]float64, len(fields))
		for i, field := range fields {
			values[i] = number(s.FieldByIndex(field.Index))
		}
		return values
	}
	return metrics, read, errors.Join(errs...)
}

var duration = reflect.TypeFor[time.Duration]()

func statOf(field reflect.StructField) (Metric, error) {
	m := Metric{
		Name:   "ratetier.store." + snake(field.Name),
		Labels: []string{"store"},
		Help:   field.Name + ", as the documentation of the store's Stats has it.",
	}
	switch {
	case field.Type == duration:
		m.Unit = "s"
	case reflect.Zero(field.Type).CanUint():
	case reflect.Zero(field.Type).CanInt(), field.Type.Kind() == reflect.Bool:
		m.Kind = Gauge
	default:
		return m, fmt.Errorf("field %s is a %v: must be an integer, a duration or a bool", field.Name, field.Type)
	}
	return m, nil
}

// number returns the value of a field that statOf has accepted.
func number(v reflect.Value) float64 {
	switch {
	case v.Type() == duration:
		return time.Duration(v.Int()).Seconds()
	case v.CanUint():
		return float64(v.Uint())
	case v.CanInt():
		return float64(v.Int())
	case v.Bool():
		return 1
	default:
		return 0
	}
}

// snake turns "FullBuckets" into "full_buckets".
func snake(name string) string {
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
