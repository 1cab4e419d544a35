package examples_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// target are the labels that Prometheus adds to whatever it reads.
var target = []string{"instance", "job"}

// check returns an error if the query is none, or if one of its selectors matches nothing
// that is exported; and the labels of what it results in.
func (s series) check(query string) ([]string, error) {
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	if err != nil {
		return nil, err
	}
	return s.labelsOf(expr)
}

// labelsOf returns the labels of the expression's result.
func (s series) labelsOf(expr parser.Expr) ([]string, error) {
	switch e := expr.(type) {
	case *parser.VectorSelector:
		return s.selected(e)
	case *parser.MatrixSelector:
		return s.labelsOf(e.VectorSelector)
	case *parser.ParenExpr:
		return s.labelsOf(e.Expr)
	case *parser.NumberLiteral, *parser.StringLiteral:
		return nil, nil
	case *parser.Call:
		found, err := s.labelsOf(e.Args[len(e.Args)-1])
		if e.Func.Name == "histogram_quantile" {
			found = slices.DeleteFunc(found, func(label string) bool { return label == "le" })
		}
		return found, err
	case *parser.AggregateExpr:
		found, err := s.labelsOf(e.Expr)
		if e.Op == parser.TOPK || err != nil {
			return found, err
		}
		for _, label := range e.Grouping {
			if !slices.Contains(found, label) {
				return nil, fmt.Errorf("by %q: there are only %q", label, found)
			}
		}
		return e.Grouping, nil
	case *parser.BinaryExpr:
		left, err := s.labelsOf(e.LHS)
		if err != nil {
			return nil, err
		}
		right, err := s.labelsOf(e.RHS)
		if _, number := e.RHS.(*parser.NumberLiteral); !number && !slices.Equal(left, right) && err == nil {
			err = fmt.Errorf("%q on the left, %q on the right of %v", left, right, e.Op)
		}
		return left, err
	default:
		return nil, fmt.Errorf("%T: teach this test to read it", expr)
	}
}

// selected returns the labels of the series that a selector matches.
func (s series) selected(selector *parser.VectorSelector) ([]string, error) {
	exported, ok := s[selector.Name]
	if !ok {
		return nil, fmt.Errorf("%q is not exported", selector.Name)
	}
	var found []string
	exported[0].Range(func(label labels.Label) { found = append(found, label.Name) })
	matchers := slices.DeleteFunc(slices.Clone(selector.LabelMatchers), func(matcher *labels.Matcher) bool {
		return matcher.Name == model.MetricNameLabel
	})
	for _, matcher := range matchers {
		if !slices.Contains(found, matcher.Name) {
			return nil, fmt.Errorf("%q has no label %q, only %q", selector.Name, matcher.Name, found)
		}
	}
	matches := func(of labels.Labels) bool {
		return !slices.ContainsFunc(matchers, func(matcher *labels.Matcher) bool { return !matcher.Matches(of.Get(matcher.Name)) })
	}
	if !slices.ContainsFunc(exported, matches) {
		return nil, fmt.Errorf("%v matches nothing", selector)
	}
	return append(found, target...), nil
}

// A query that is wrong is noticed: the checks of the dashboard and the alerts can fail.
func TestWrongQueriesAreNoticed(t *testing.T) {
	exported := exportedSeries(t)
	for query, want := range map[string]string{
		"rate(ratetier_decisions_total[5m]":                                                       "parse error",
		"rate(ratetier_decision_total[5m])":                                                       `"ratetier_decision_total" is not exported`,
		`ratetier_decisions_total{plan!="free"}`:                                                  `no label "plan"`,
		`ratetier_decisions_total{outcome="limitted"}`:                                            "matches nothing",
		`ratetier_decisions_total{outcome=~"limited|allowed",route=~"/.*"}`:                       "matches nothing",
		"sum by (plan) (rate(ratetier_decisions_total[5m]))":                                      `by "plan"`,
		"sum by (tier) (sum by (route) (ratetier_decisions_total))":                               `by "tier"`,
		"sum by (tier) (ratetier_decisions_total) / sum by (route) (ratetier_cost_charged_total)": `"tier"] on the left, ["route"] on the right`,
		"sum by (le) (histogram_quantile(0.9, rate(ratetier_check_duration_seconds_bucket[5m])))": `by "le"`,
		"histogram_quantile(0.9, sum by (le) (rate(ratetier_check_duration_seconds[5m])))":        "is not exported",
		"ratetier_store_buckets > ratetier_store_bucket":                                          "is not exported",
	} {
		if _, err := exported.check(query); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", query, err, want)
		}
	}
}

// panel is what matters about a panel of Grafana.
type panel struct {
	Title, Description, Type string
	Targets                  []struct{ Expr, LegendFormat string }
	GridPos                  struct{ H, W, X, Y int }
}

func content(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func panels(t *testing.T) []panel {
	t.Helper()
	var dashboard struct{ Panels []panel }
	if err := json.Unmarshal([]byte(content(t, "../docs/metrics/grafana.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	return dashboard.Panels
}

// legend finds the labels that a legend shows, annotation those that the text of an alert
// does.
var (
	legend     = regexp.MustCompile(`{{(\w+)}}`)
	annotation = regexp.MustCompile(`\$labels\.(\w+)`)
)

// shown returns an error if the text shows a label that is not there.
func shown(text string, in *regexp.Regexp, there []string) error {
	for _, label := range in.FindAllStringSubmatch(text, -1) {
		if !slices.Contains(there, label[1]) {
			return fmt.Errorf("%q shows the label %q, there are only %q", text, label[1], there)
		}
	}
	return nil
}

func TestTheDashboardShowsWhatIsExported(t *testing.T) {
	exported, page := exportedSeries(t), content(t, "../docs/metrics.md")
	taken := map[[2]int]string{}
	for _, p := range panels(t) {
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%s: lies on %q, or outside", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if row := fmt.Sprintf("| %s | %s |\n", p.Title, p.Description); !strings.Contains(page, row) {
			t.Errorf("docs/metrics.md lacks the row\n%s", row)
		}
		if len(p.Targets) == 0 {
			t.Errorf("%s: no query", p.Title)
		}
		for _, target := range p.Targets {
			there, err := exported.check(strings.ReplaceAll(target.Expr, "$__rate_interval", "5m"))
			if err == nil {
				err = shown(target.LegendFormat, legend, there)
			}
			if err != nil {
				t.Errorf("%s: %v", p.Title, err)
			}
		}
	}
}

func TestTheAlertsAskForWhatIsExported(t *testing.T) {
	var file struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	if err := yaml.UnmarshalWithOptions([]byte(content(t, "../docs/metrics/alerts.yml")), &file, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	exported, page := exportedSeries(t), content(t, "../docs/metrics.md")
	names := map[string]bool{}
	for _, rule := range file.Groups[0].Rules {
		there, err := exported.check(rule.Expr)
		if err == nil {
			err = shown(rule.Annotations["summary"], annotation, there)
		}
		if err != nil || rule.Annotations["summary"] == "" || rule.Labels["severity"] == "" {
			t.Errorf("%s: %v, %+v", rule.Alert, err, rule)
		}
		if !strings.Contains(page, fmt.Sprintf("\n| `%s` | ", rule.Alert)) {
			t.Errorf("docs/metrics.md has no row for %s", rule.Alert)
		}
		names[rule.Alert] = true
	}
	for _, alert := range regexp.MustCompile("\n\\| `(Ratetier\\w+)`").FindAllStringSubmatch(page, -1) {
		if !names[alert[1]] {
			t.Errorf("docs/metrics.md has the alert %s, which is none", alert[1])
		}
	}
}

// The page lists each metric with its type and labels, and no other.
func TestThePageListsWhatIsExported(t *testing.T) {
	page := content(t, "../docs/metrics.md")
	families, err := inPrometheus(t).Gather()
	if err != nil {
		t.Fatal(err)
	}
	exported := map[string]bool{}
	for _, family := range families {
		exported[family.GetName()] = true
		var of []string
		for _, label := range family.GetMetric()[0].GetLabel() {
			of = append(of, "`"+label.GetName()+"`")
		}
		row := fmt.Sprintf("\n| `%s` | %s | %s | ", family.GetName(), strings.ToLower(family.GetType().String()), strings.Join(of, ", "))
		if !strings.Contains(page, row) {
			t.Errorf("docs/metrics.md lacks a row that begins with%s", row)
		}
	}
	for _, name := range regexp.MustCompile(`ratetier_\w+`).FindAllString(page, -1) {
		if !exported[name] {
			t.Errorf("docs/metrics.md has %s, which is not among %q", name, slices.Sorted(maps.Keys(exported)))
		}
	}
}
