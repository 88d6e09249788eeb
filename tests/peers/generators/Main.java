// Program over the generated client: starts a run, answers its call, and follows its events.

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import toolgate.ApiClient;
import toolgate.ApiException;
import toolgate.ApiResponse;
import toolgate.api.RunsApi;
import toolgate.model.*;

public class Main {
  private static final String URL = System.getenv("TOOLGATE_URL");
  private static final String AUTHORIZATION = "Bearer " + System.getenv("TOOLGATE_KEY");
  private static final ApiClient CLIENT = new ApiClient();

  public static void main(String[] arguments) throws Exception {
    CLIENT.updateBaseUri(URL);
    CLIENT.setRequestInterceptor(request -> request.setHeader("Authorization", AUTHORIZATION));
    RunsApi runs = new RunsApi(CLIENT);

    NewRun body = new NewRun().input("How is order A-1077?").addExternalToolsItem(new ExternalTool().name("lookup_order"));
    ApiResponse<Run> started = runs.createRunWithHttpInfo(body, null, null, null);
    check(started.getHeaders().containsKey("location"), "a new run has an address");
    Run run = started.getData();
    check(run.getStatus() == Status.PENDING, "the run waits: " + run.getStatus());

    PendingExternalResult call = (PendingExternalResult) run.getPending().get(0).getActualInstance();
    check(call.getTool().getName().equals("lookup_order"), "the pending item is typed");
    ResultAnswer result = new ResultAnswer().callId(call.getCallId()).type(ResultAnswer.TypeEnum.RESULT).output(Map.of("state", "late"));
    run = runs.resumeRun(run.getId(), null, null, null, null, new Resume().addAnswersItem(new Answer(result)));
    check(run.getStatus() == Status.COMPLETED, "the run completed: " + run.getStatus());

    List<Event> page = runs.watchRun(run.getId(), null, null, "content", null, 100).getData();
    EventExecutionCompleted last = (EventExecutionCompleted) page.get(page.size() - 1).getActualInstance();
    check(!last.getOutput().getText().isEmpty(), "the last event of the page is typed");

    List<StreamEvent> followed = follow(run.getId());
    check(followed.size() == page.size(), "the stream has the events of the page: " + followed.size() + " " + page.size());
    check(followed.get(followed.size() - 1).getActualInstance() instanceof EventExecutionCompleted, "the last event of the stream is typed");

    try {
      runs.readRun("run_unknown", null);
      check(false, "an unknown run is refused");
    } catch (ApiException refused) {
      Problem problem = CLIENT.getObjectMapper().readValue(refused.getResponseBody(), Problem.class);
      check(refused.getCode() == 404 && problem.getCode() == ErrorCode.NOT_FOUND, "a problem is typed");
    }
    System.out.println(followed.size() + " events");
  }

  // The generated operation reads a page. A stream is read by hand; its messages are typed.
  private static List<StreamEvent> follow(String run) throws Exception {
    HttpRequest request = HttpRequest.newBuilder(URI.create(URL + "/v1/runs/" + run + "/events?include=content"))
        .header("Accept", "text/event-stream").header("Authorization", AUTHORIZATION).build();
    HttpResponse<java.util.stream.Stream<String>> response = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofLines());
    List<StreamEvent> events = new ArrayList<>();
    for (String line : (Iterable<String>) response.body()::iterator) {
      if (line.startsWith("data: ")) {
        events.add(CLIENT.getObjectMapper().readValue(line.substring(6), StreamEvent.class));
      }
    }
    return events;
  }

  private static void check(boolean holds, String what) {
    if (!holds) {
      throw new AssertionError(what);
    }
  }
}
