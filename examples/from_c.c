/* Asks from C: the result comes as JSON, and so does what is wrong with a scenario. */
/* SPDX-License-Identifier: Apache-2.0 */
#include <interlock/interlock_c.h>
#include <stdio.h>
#include <string.h>

static int tell(const char* scenario, const char* options) {
  char* answer = NULL;
  const int status = interlock_simulate(scenario, options, &answer);
  const char* key = status == INTERLOCK_OK ? "\"step_time_s\"" : "\"message\"";
  const char* line = answer ? strstr(answer, key) : NULL;
  if (line) printf("status %d, %.*s\n", status, (int)strcspn(line, "\n"), line);
  interlock_free(answer);
  return status;
}

int main(void) {
  const char* scenario =
      "{\"model\": \"gpt2-xl\", \"cluster\": {\"machine\": \"dgx-a100-80g\", \"devices\": 4},"
      " \"parallel\": {\"pipeline\": 4}, \"training\": {\"strategy\": \"global\", \"global_batch_size\": 16}}";
  printf("interlock %s\n", interlock_version());
  if (tell(scenario, NULL) != INTERLOCK_OK) return 1;
  if (tell(scenario, "{\"set\": [\"training.global_batch_size=32\"]}") != INTERLOCK_OK) return 1;
  return tell(scenario, "{\"set\": [\"training.schedule=1f1bb\"]}") == INTERLOCK_ERROR ? 0 : 1;
}
