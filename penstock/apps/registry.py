"""The applications by name, and where their flow is made."""

APPS = {
    "classifier": "penstock.apps.classifier:flow",
    "livestream": "penstock.apps.livestream:flow",
    "primetest": "penstock.apps.primetest:flow",
    "twitter": "penstock.apps.twitter:flow",
    "wordcount": "penstock.apps.wordcount:flow",
}
