# Sourced by the scripts that run Airflow. Installs it into the user's cache, and keeps its database, logs and settings
# in the folder $1, which ends with the run. Nothing is looked up on the network.
#
# Environment: SHED_PYTHON=python3   a Python from 3.11 to 3.13 with the module venv
requirements=e2e/airflow/requirements.txt
# Another list of packages, another folder.
venv=${XDG_CACHE_HOME:-$HOME/.cache}/shed/airflow-$(sha256sum "$requirements" | cut -c1-12)
if [ ! -e "$venv/.complete" ]; then
    say "installing Airflow into $venv (a few minutes)"
    rm -rf -- "$venv"
    "${SHED_PYTHON:-python3}" -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check --requirement "$requirements"
    touch "$venv/.complete"
fi
export AIRFLOW_HOME=$1/home AIRFLOW__CORE__DAGS_FOLDER=$1/dags AIRFLOW__CORE__LOAD_EXAMPLES=False \
    AIRFLOW__CORE__UNIT_TEST_MODE=False AIRFLOW__USAGE_DATA_COLLECTION__ENABLED=False \
    AIRFLOW__LOGGING__LOGGING_LEVEL=WARNING
mkdir -p "$AIRFLOW_HOME" "$AIRFLOW__CORE__DAGS_FOLDER"
python() { "$venv/bin/python" "$@"; }
