// Program over the generated client: starts a run, answers its call, and follows its events.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"

	"toolgate"
)

func main() {
	configuration := toolgate.NewConfiguration()
	configuration.Servers = toolgate.ServerConfigurations{{URL: os.Getenv("TOOLGATE_URL")}}
	client := toolgate.NewAPIClient(configuration)
	ctx := context.WithValue(context.Background(), toolgate.ContextAccessToken, os.Getenv("TOOLGATE_KEY"))

	question := "How is order A-1077?"
	body := toolgate.NewCreateRun(toolgate.StringAsCreateInput(&question))
	tool := toolgate.NewExternalTool("lookup_order")
	body.SetExternalTools([]toolgate.ExternalTool{*tool})
	run, response, err := client.RunsAPI.CreateRun(ctx).CreateRun(*body).Execute()
	check(err)
	assert(response.Header.Get("Location") != "", "a new run has an address")
	assert(run.Status == toolgate.STATUS_PENDING, "the run waits: "+string(run.Status))

	call := run.Pending[0].PendingExternalResult
	assert(call != nil && call.Tool.Name == "lookup_order", "the pending item is typed")
	result := toolgate.NewResultAnswer(call.CallId, "result")
	result.SetOutput(map[string]interface{}{"state": "late"})
	answers := toolgate.NewResume()
	answers.SetAnswers([]toolgate.Answer{toolgate.ResultAnswerAsAnswer(result)})
	run, _, err = client.RunsAPI.ResumeRun(ctx, run.Id).Resume(*answers).Execute()
	check(err)
	assert(run.Status == toolgate.STATUS_COMPLETED, "the run completed: "+string(run.Status))

	page, _, err := client.RunsAPI.WatchRun(ctx, run.Id).Limit(100).Include("content").Execute()
	check(err)
	last := page.Data[len(page.Data)-1].EventExecutionCompleted
	assert(last != nil && last.Output.Text != "", "the last event of the page is typed")

	followed := follow(ctx, configuration, run.Id)
	assert(len(followed) == len(page.Data), fmt.Sprint("the stream has the events of the page: ", len(followed), " ", len(page.Data)))
	assert(followed[len(followed)-1].EventExecutionCompleted != nil, "the last event of the stream is typed")

	_, response, err = client.RunsAPI.ReadRun(ctx, "run_unknown").Execute()
	problem, isProblem := err.(*toolgate.GenericOpenAPIError).Model().(toolgate.Problem)
	assert(response.StatusCode == 404 && isProblem && problem.Code == toolgate.ERRORCODE_NOT_FOUND, "a problem is typed")
	fmt.Println(len(followed), "events")
}

// The generated operation reads a page. A stream is read by hand; its messages are typed.
func follow(ctx context.Context, configuration *toolgate.Configuration, run string) []toolgate.StreamEvent {
	request, err := http.NewRequestWithContext(ctx, "GET", configuration.Servers[0].URL+"/v1/runs/"+run+"/events?include=content", nil)
	check(err)
	request.Header.Set("Accept", "text/event-stream")
	request.Header.Set("Authorization", "Bearer "+os.Getenv("TOOLGATE_KEY"))
	response, err := http.DefaultClient.Do(request)
	check(err)
	defer response.Body.Close()
	var events []toolgate.StreamEvent
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if data := strings.TrimPrefix(lines.Text(), "data: "); data != lines.Text() {
			var event toolgate.StreamEvent
			check(json.Unmarshal([]byte(data), &event))
			events = append(events, event)
		}
	}
	check(lines.Err())
	return events
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func assert(holds bool, what string) {
	if !holds {
		panic(what)
	}
}
