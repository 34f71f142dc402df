"""The applications by name, and where their flow is made."""

APPS = {
    "primetest": "penstock.apps.primetest:flow",
    "wordcount": "penstock.apps.wordcount:flow",
}
