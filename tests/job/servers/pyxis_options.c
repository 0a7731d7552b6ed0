/* Teaches a test cluster's srun the options of pyxis. Nothing is put in a container: the task is told
 * in TEST_IMAGE and TEST_MOUNTS what was asked.
 * gcc -shared -fPIC -o pyxis_options.so pyxis_options.c (slurm/spank.h: Debian's libslurm-dev) */
#include <slurm/spank.h>
#include <stdlib.h>
#include <string.h>

SPANK_PLUGIN(pyxis_options, 1)

enum { IMAGE, MOUNTS, NO_HOME, NO_ENTRYPOINT };
static char *told[2];

static int take(int which, const char *value, int remote)
{
    (void)remote;
    if (which <= MOUNTS)
        told[which] = strdup(value);
    return ESPANK_SUCCESS;
}

int slurm_spank_init(spank_t spank, int count, char **words)
{
    struct spank_option options[] = {
        {"container-image", "IMAGE", "image to run", 1, IMAGE, take},
        {"container-mounts", "LIST", "what it sees", 1, MOUNTS, take},
        {"no-container-mount-home", NULL, "no home", 0, NO_HOME, take},
        {"no-container-entrypoint", NULL, "no entrypoint", 0, NO_ENTRYPOINT, take},
    };
    (void)count, (void)words;
    for (unsigned n = 0; n < sizeof options / sizeof *options; n++)
        if (spank_option_register(spank, &options[n]) != ESPANK_SUCCESS)
            return -1;
    return 0;
}

int slurm_spank_task_init(spank_t spank, int count, char **words)
{
    (void)count, (void)words;
    if (told[IMAGE])
        spank_setenv(spank, "TEST_IMAGE", told[IMAGE], 1);
    if (told[MOUNTS])
        spank_setenv(spank, "TEST_MOUNTS", told[MOUNTS], 1);
    return 0;
}
